//! Recorded sessions, where they are at hand.

use std::path::{Path, PathBuf};

/// A file of the shared data, or `None` with a word about it.
pub(crate) fn data(path: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("CTX_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let path = folder.join(path);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: {} is not there (set CTX_DATA)", path.display());
    None
}

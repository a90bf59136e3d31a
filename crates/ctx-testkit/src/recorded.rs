//! Recorded sessions, if they are available.

use std::io::Write;
use std::path::{Path, PathBuf};

/// Returns the path of a file or folder of recorded sessions, under `$CTX_DATA` or else under
/// `../shared/data` beside the workspace, as they are too large for the workspace. If it does not
/// exist, reports that the test is skipped and returns `None`.
///
/// ```
/// let Some(file) = ctx_testkit::recorded("pi/golden.json") else { return };
/// assert!(file.exists());
/// ```
pub fn recorded(path: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("CTX_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let path = folder.join(path);
    if path.exists() {
        return Some(path);
    }
    // They are not part of CI either.
    let _ = writeln!(std::io::stderr(), "skipped: {} is missing (set CTX_DATA)", path.display());
    None
}

//! Lists folders.

use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result};

/// Lists the files in a folder, sorted by name; empty if the folder does not exist.
pub(crate) fn list_folder(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = |e| {
        Error::new(ErrorKind::Io, "cannot list the folder")
            .with("path", folder.display())
            .source(e)
            .hint("check the owner and the permissions of the folder")
    };
    ctx_disk::list(folder).map_err(failed)
}

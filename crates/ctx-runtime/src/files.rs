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
    let listing = match std::fs::read_dir(folder) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        listing => listing.map_err(failed)?,
    };
    let paths = listing.map(|item| Ok(item.map_err(failed)?.path()));
    let mut paths = paths.collect::<Result<Vec<_>>>()?;
    paths.sort_unstable();
    Ok(paths)
}

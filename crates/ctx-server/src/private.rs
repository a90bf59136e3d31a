//! Folders and files that nobody but their owner may look into.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Result;
use std::path::Path;

/// Makes a folder, and those above it.
pub(crate) fn folder(path: &Path) -> Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Opens a file to append to.
pub(crate) fn append(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

//! Reads and replaces configuration files.

use std::fs;
use std::io;
use std::path::Path;

use ctx_core::Result;
use ctx_disk::io_error;

/// Returns the bytes of a file; `None` if it does not exist.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    match ctx_disk::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(io_error("cannot read the configuration", path, e)),
    }
}

/// Returns the text of a file; `None` if it does not exist.
pub(crate) fn read_text(path: &Path) -> Result<Option<String>> {
    let text = read(path)?.map(String::from_utf8).transpose();
    text.map_err(|e| {
        let error = io::Error::new(io::ErrorKind::InvalidData, e);
        io_error("cannot read the configuration", path, error)
            .hint("save it as UTF-8 first; nothing was changed")
    })
}

/// Replaces a file, and keeps who may read it.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let permissions = fs::metadata(path).map(|found| found.permissions());
    ctx_disk::create_private_dir(ctx_disk::parent(path))?;
    ctx_disk::write_atomic(path, bytes)?;
    match permissions {
        Ok(kept) => fs::set_permissions(path, kept)
            .map_err(|e| io_error("cannot restore the permissions", path, e)),
        Err(_) => Ok(()),
    }
}

//! Files the way this crate wants them: private, whole, and with errors that name them.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result};

/// An I/O error on `path`, with what was attempted.
pub(crate) fn io_error(doing: &'static str, path: &Path, error: io::Error) -> Error {
    let (kind, hint) = match error.kind() {
        io::ErrorKind::NotFound => (ErrorKind::NotFound, None),
        io::ErrorKind::AlreadyExists => (ErrorKind::Conflict, None),
        io::ErrorKind::PermissionDenied => {
            (ErrorKind::Io, Some("check the owner and the permissions of the file and its folder"))
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            (ErrorKind::Io, Some("free some disk space; nothing that was stored before is lost"))
        }
        _ => (ErrorKind::Io, None),
    };
    let mut wrapped =
        Error::new(kind, doing).with("path", path.display()).with("cause", &error).source(error);
    if let Some(hint) = hint {
        wrapped = wrapped.hint(hint);
    }
    wrapped
}

/// Options that create files readable and writable by their owner alone.
pub(crate) fn private() -> OpenOptions {
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Creates a folder and its missing parents, each for their owner alone.
pub(crate) fn create_private_dir(path: &Path) -> Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|e| io_error("cannot create the folder", path, e))
}

/// The folder a file is in.
pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// `path` with `suffix` added to its file name.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Makes the names in a folder durable. Only Unix has and needs this.
pub(crate) fn sync_dir(path: &Path) -> Result<()> {
    if cfg!(unix) {
        let sync = File::open(path).and_then(|dir| dir.sync_all());
        sync.map_err(|e| io_error("cannot sync the folder", path, e))?;
    }
    Ok(())
}

/// Puts `bytes` in the place of `path`: readers see the old file or the new one, also after a
/// crash. The caller holds whatever lock guards the file.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let temporary = beside(path, &format!(".{}.tmp", uuid::Uuid::new_v4().simple()));
    let write = || {
        let mut file = private().write(true).create_new(true).open(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)
    };
    if let Err(e) = write() {
        // Best effort: the error that matters is the one being reported.
        let _ = std::fs::remove_file(&temporary);
        return Err(io_error("cannot replace the file", path, e));
    }
    sync_dir(parent(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaced_files_are_whole_and_private() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b");
        create_private_dir(&deep).unwrap();
        let file = deep.join("f");
        replace(&file, b"one").unwrap();
        replace(&file, b"two").unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"two");
        assert_eq!(std::fs::read_dir(&deep).unwrap().count(), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |p: &Path| std::fs::metadata(p).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&deep), mode(&file)), (0o700, 0o600));
        }
    }

    #[test]
    fn a_failed_replacement_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let taken = dir.path().join("folder");
        std::fs::create_dir(&taken).unwrap();
        let error = replace(&taken, b"x").unwrap_err();
        assert!(error.to_string().contains("folder"), "{error}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}

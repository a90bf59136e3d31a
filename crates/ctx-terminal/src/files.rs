//! Output files, written atomically.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use ctx_core::{Error, ErrorKind};
use tempfile::NamedTempFile;

/// Whether an existing file at an output path is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and the output fails.
    Keep,
    /// It is replaced.
    Replace,
}

impl Existing {
    /// Returns `Replace` with `force`.
    pub fn replaced_if(force: bool) -> Self {
        if force { Self::Replace } else { Self::Keep }
    }
}

/// Who may read an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// The default for new files of the user.
    Usual,
    /// Only the owner, from the first byte on.
    Owner,
}

/// Writes an output atomically: to a temporary file beside the target, then moved.
pub fn write<T>(
    readers: Readers,
    path: &Path,
    existing: Existing,
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let in_the_way = || {
        let error = Error::new(ErrorKind::Conflict, "the output file exists already");
        error.with("path", path.display()).hint("--force replaces it")
    };
    if existing == Existing::Keep && path.symlink_metadata().is_ok() {
        return Err(in_the_way().into());
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let failed = |e: &io::Error| {
        let what = match e.kind() {
            io::ErrorKind::NotFound => "its folder does not exist".to_owned(),
            kind => kind.to_string(),
        };
        Error::new(ErrorKind::Io, format!("cannot write the output: {what}"))
            .with("path", path.display())
            .hint("name a file in a folder that exists and that you may write to")
    };
    let mut file = temporary_in(folder, readers).map_err(|e| failed(&e))?;
    let mut writer = BufWriter::new(file.as_file_mut());
    let written = write(&mut writer).map_err(|error| match error.downcast::<io::Error>() {
        Ok(e) => failed(&e).into(),
        Err(error) => error,
    })?;
    writer.flush().map_err(|e| failed(&e))?;
    drop(writer);
    match existing {
        Existing::Replace => file.persist(path).map_err(|e| failed(&e.error))?,
        Existing::Keep => file.persist_noclobber(path).map_err(|e| match e.error.kind() {
            io::ErrorKind::AlreadyExists => in_the_way(),
            _ => failed(&e.error),
        })?,
    };
    Ok(written)
}

/// Creates an empty file in a folder, to be moved over another file when it is complete.
#[cfg(unix)]
pub fn temporary_in(folder: &Path, readers: Readers) -> io::Result<NamedTempFile> {
    use std::os::unix::fs::PermissionsExt;
    let mode = match readers {
        Readers::Usual => 0o666,
        Readers::Owner => 0o600,
    };
    let permissions = std::fs::Permissions::from_mode(mode);
    tempfile::Builder::new().permissions(permissions).tempfile_in(folder)
}

/// Creates an empty file in a folder, whose access rights it inherits.
#[cfg(not(unix))]
pub fn temporary_in(folder: &Path, _readers: Readers) -> io::Result<NamedTempFile> {
    NamedTempFile::new_in(folder)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn private_output_is_private_while_it_is_written() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("out");
        let modes = || {
            let files = std::fs::read_dir(dir.path()).expect("a folder");
            let mode = |file: io::Result<std::fs::DirEntry>| {
                file.and_then(|file| file.metadata()).expect("a file").permissions().mode() & 0o777
            };
            files.map(mode).collect::<Vec<_>>()
        };
        // The replaced file may have been readable by all users.
        for existing in [Existing::Keep, Existing::Replace] {
            let replaced = usize::from(existing == Existing::Replace);
            let found = write(Readers::Owner, &path, existing, |writer| {
                writer.write_all(b"secret")?;
                writer.flush()?;
                Ok(modes())
            });
            let found = found.expect("written");
            assert_eq!(found.iter().filter(|mode| **mode == 0o600).count(), 1, "{found:?}");
            assert_eq!(found.len(), 1 + replaced);
            assert_eq!(modes(), [0o600]);
            let open = std::fs::Permissions::from_mode(0o644);
            std::fs::set_permissions(&path, open).expect("rights");
        }
    }
}

//! Files the way this crate wants them: private, whole, and with errors that name them.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result};

/// An I/O error on `path`, with what was attempted. The system's words are its source.
pub(crate) fn io_error(doing: &'static str, path: &Path, error: io::Error) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::NotFound => ErrorKind::NotFound,
        io::ErrorKind::AlreadyExists => ErrorKind::Conflict,
        _ => ErrorKind::Io,
    };
    let hint = hint(error.kind());
    let wrapped = Error::new(kind, doing).with("path", path.display()).source(error);
    match hint {
        Some(hint) => wrapped.hint(hint),
        None => wrapped,
    }
}

/// What to do about an error of that kind.
pub(crate) fn hint(kind: io::ErrorKind) -> Option<&'static str> {
    Some(match kind {
        io::ErrorKind::NotFound => "check the spelling of the path, and whether it is still there",
        io::ErrorKind::AlreadyExists => {
            "something of that name is there already: move it away, or choose another name"
        }
        io::ErrorKind::NotADirectory => "a part of the path is a file, where a folder should be",
        io::ErrorKind::IsADirectory => "the path is that of a folder; name a file",
        io::ErrorKind::PermissionDenied => {
            "check the owner and the permissions of the file and its folder"
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            "the file system cannot be written to: mount it writable, or choose another folder"
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some disk space; nothing that was stored before is lost"
        }
        io::ErrorKind::FileTooLarge => {
            "the limit of file sizes is reached: raise it (`ulimit -f`), or choose another file \
             system; nothing that was stored before is lost"
        }
        _ => return None,
    })
}

/// Options that create files readable and writable by their owner alone.
pub(crate) fn private() -> OpenOptions {
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Creates a folder and its missing parents, each for their owner alone, and durably: a file
/// synced later is not lost because the name of a folder above it was.
pub(crate) fn create_private_dir(path: &Path) -> Result<()> {
    create_dirs(path, sync_dir)
}

fn create_dirs(path: &Path, sync: impl Fn(&Path) -> Result<()>) -> Result<()> {
    let missing: Vec<_> =
        path.ancestors().take_while(|dir| !dir.as_os_str().is_empty() && !dir.is_dir()).collect();
    for dir in missing.into_iter().rev() {
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        match builder.create(dir) {
            // Another process was faster. Whether it has synced the name already is not known.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => {}
            created => created.map_err(|e| io_error("cannot create the folder", dir, e))?,
        }
        sync(parent(dir))?;
    }
    Ok(())
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

const TEMPORARY: &str = ".tmp";

/// Whether a file whose name is another's and `suffix` is one that [`replace`] was writing.
pub(crate) fn is_temporary(suffix: &str) -> bool {
    let id = suffix.strip_prefix('.').and_then(|rest| rest.strip_suffix(TEMPORARY));
    id.is_some_and(|id| id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Puts `bytes` in the place of `path`: readers see the old file or the new one, also after a
/// crash. The caller holds whatever lock guards the file.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let temporary = beside(path, &format!(".{}{TEMPORARY}", uuid::Uuid::new_v4().simple()));
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
    fn every_new_name_of_a_folder_is_synced() {
        let dir = tempfile::tempdir().unwrap();
        let synced = std::cell::RefCell::new(Vec::new());
        let create = |path: &str| {
            let sync = |synced_dir: &Path| {
                synced.borrow_mut().push(synced_dir.to_owned());
                sync_dir(synced_dir)
            };
            create_dirs(&dir.path().join(path), sync).unwrap();
            synced.take()
        };
        let at = |path: &str| dir.path().join(path);
        assert_eq!(create("agents/a/sessions"), [at(""), at("agents"), at("agents/a")]);
        assert_eq!(create("agents/b"), [at("agents")]);
        assert!(create("agents/b").is_empty());
    }

    #[test]
    fn errors_say_what_to_do_and_their_cause_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        std::fs::write(&file, "").unwrap();
        let below = create_private_dir(&file.join("g")).unwrap_err();
        let taken = create_private_dir(&file).unwrap_err();
        assert_eq!((below.kind(), taken.kind()), (ErrorKind::Conflict, ErrorKind::Conflict));
        assert_eq!(below.context(), taken.context(), "the file that is in the way is named");
        let gone = sync_dir(&dir.path().join("gone")).unwrap_err();
        assert_eq!(gone.kind(), ErrorKind::NotFound);
        for error in [below, taken, gone] {
            let cause = std::error::Error::source(&error).unwrap().to_string();
            assert!(error.hint_text().is_some() && !error.to_string().contains(&cause), "{error}");
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

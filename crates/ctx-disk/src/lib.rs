//! File access for ctx: private files, atomic writes, one writer at a time, append-only logs, errors
//! with the path.

#![forbid(unsafe_code)]

mod lock;
mod log;
pub mod lru;
mod newer;

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ctx_core::{Error, ErrorKind, Result};

pub use lock::{FileLock, set_default_timeout, sidecar_of};
pub use log::group_commit::{GroupCommit, recover_journals};
pub use log::{LogFile, Medium, OsMedium, first_line};
pub use newer::{is_newer, newer};

/// The most bytes that [`read_at`] reserves before it has read any: 1 MiB.
const RESERVED: u64 = 1 << 20;

/// Creates an error for a failed `operation` on `path`. The system's error is its source.
pub fn io_error(operation: impl Into<Cow<'static, str>>, path: &Path, error: io::Error) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::NotFound => ErrorKind::NotFound,
        io::ErrorKind::AlreadyExists => ErrorKind::Conflict,
        _ => ErrorKind::Io,
    };
    let hint = hint(error.kind());
    let wrapped = Error::new(kind, operation).with("path", path.display()).source(error);
    match hint {
        Some(hint) => wrapped.hint(hint),
        None => wrapped,
    }
}

/// Returns a hint for errors of this kind, if there is one.
pub fn hint(kind: io::ErrorKind) -> Option<&'static str> {
    Some(match kind {
        io::ErrorKind::NotFound => "check the spelling of the path, and whether it still exists",
        io::ErrorKind::AlreadyExists => {
            "the name is already in use: move the existing file away, or choose another name"
        }
        io::ErrorKind::NotADirectory => "a part of the path is a file, where a folder should be",
        io::ErrorKind::IsADirectory => "the path is a folder; specify a file",
        io::ErrorKind::PermissionDenied => {
            "check the owner and the permissions of the file and its folder"
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            "the file system is read-only: mount it writable, or choose another folder"
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some disk space; stored data is not lost"
        }
        io::ErrorKind::InvalidInput => "specify a regular file",
        io::ErrorKind::FileTooLarge => {
            "the limit of file sizes is reached: raise it (`ulimit -f`), or choose another file \
             system; nothing that was stored before is lost"
        }
        _ => return None,
    })
}

/// Opens a file for reading. Named pipes are refused, because opening one blocks until a writer
/// opens it too. A pipe from the shell, such as `/dev/fd/63`, has a writer and is accepted.
///
/// # Errors
///
/// Those of [`File::open`], and [`io::ErrorKind::InvalidInput`] for a named pipe.
pub fn open(path: impl AsRef<Path>) -> io::Result<File> {
    let path = path.as_ref();
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    if !["/dev/fd/", "/dev/stdin", "/proc/"].iter().any(|prefix| path.starts_with(prefix)) {
        use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
        // Has no effect on regular files.
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32);
        let file = options.open(path)?;
        if file.metadata()?.file_type().is_fifo() {
            let what = "named pipes are not supported";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        return Ok(file);
    }
    options.open(path)
}

/// Reads a file as bytes.
///
/// # Errors
///
/// Those of [`open`].
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a file as text.
///
/// # Errors
///
/// Those of [`open`], and [`io::ErrorKind::InvalidData`] if the file is not UTF-8.
pub fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
}

/// Returns options that create files readable and writable only by their owner.
pub fn private() -> OpenOptions {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix has a mode to set"))]
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Creates a folder and its missing parents, each accessible only by the owner, and syncs each new
/// name. Otherwise a crash could lose a folder and the synced files in it.
pub fn create_private_dir(path: &Path) -> Result<()> {
    create_dirs(path, sync_dir)
}

fn create_dirs(path: &Path, sync: impl Fn(&Path) -> Result<()>) -> Result<()> {
    let missing: Vec<_> =
        path.ancestors().take_while(|dir| !dir.as_os_str().is_empty() && !dir.is_dir()).collect();
    for dir in missing.into_iter().rev() {
        #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix has a mode to set"))]
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        match builder.create(dir) {
            // Another process created it first and may not have synced the name yet.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => {}
            created => created.map_err(|e| io_error("cannot create the folder", dir, e))?,
        }
        sync(parent(dir))?;
    }
    Ok(())
}

/// Reads up to `most` bytes from `start`; fewer if the file ends earlier. Moves the cursor to the
/// end of the bytes read.
pub fn read_at(mut file: &File, start: u64, most: u64) -> io::Result<Vec<u8>> {
    // One call reads them: a vector without space is filled 32 bytes at first. `most` may be wrong.
    let mut bytes = Vec::with_capacity(most.min(RESERVED) as usize);
    file.seek(SeekFrom::Start(start))?;
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether a file is empty or ends with a line break. Moves the cursor to its end.
pub fn ends_line(file: &File) -> io::Result<bool> {
    let length = file.metadata()?.len();
    Ok(read_at(file, length.saturating_sub(1), 1)?.iter().all(|last| *last == b'\n'))
}

/// Returns the folder of a file.
pub fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Returns `path` with `suffix` appended to its file name.
pub fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Returns the paths in a folder, sorted; none if the folder is missing.
///
/// # Errors
///
/// If it exists and cannot be listed.
pub fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let listing = match std::fs::read_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listing => listing?,
    };
    let mut paths = listing.map(|item| Ok(item?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort_unstable();
    Ok(paths)
}

/// Returns the paths beside a file whose names begin with its name, each with the rest of its name.
/// Sorted; none if the folder cannot be listed.
pub fn list_beside(path: &Path) -> Vec<(String, PathBuf)> {
    let own = path.file_name().unwrap_or_default().as_encoded_bytes();
    let found = list(parent(path)).unwrap_or_default().into_iter().filter_map(|beside| {
        let suffix = beside.file_name()?.as_encoded_bytes().strip_prefix(own)?;
        Some((std::str::from_utf8(suffix).ok()?.to_owned(), beside))
    });
    found.collect()
}

/// Syncs the names in a folder. Does nothing except on Unix, the only system that needs it.
pub fn sync_dir(path: &Path) -> Result<()> {
    if cfg!(unix) {
        let sync = File::open(path).and_then(|dir| dir.sync_all());
        sync.map_err(|e| io_error("cannot sync the folder", path, e))?;
    }
    Ok(())
}

/// Returns the temporary path that [`replace`] writes to.
pub fn temporary(path: &Path) -> PathBuf {
    beside(path, ".tmp")
}

/// Whether `suffix`, after another file's name, marks a temporary file of [`replace`] or
/// [`write_atomic`].
pub fn is_temporary(suffix: &str) -> bool {
    let id = suffix.strip_suffix(".tmp").map(|id| id.trim_start_matches('.'));
    id.is_some_and(|id| [0, 32].contains(&id.len()) && id.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Replaces `path` atomically with what `write` writes: readers see the old file or the new one,
/// also after a crash. The caller holds the lock that guards the file, so one temporary name is
/// enough, and the leftover of a killed writer can be removed.
///
/// # Errors
///
/// If the file cannot be written. The old file is then unchanged, and no temporary file is left.
pub fn replace(
    path: &Path,
    write: impl FnOnce(&mut io::BufWriter<File>) -> io::Result<()>,
) -> Result<()> {
    let temporary = temporary(path);
    // A leftover may be readable by others, so it is not reused.
    remove(&temporary, "cannot replace the file")?;
    write_through(path, &temporary, write)
}

/// Like [`replace`], for a file without a lock. Removes temporary files of writers that were killed
/// more than an hour ago.
///
/// # Errors
///
/// Those of [`replace`].
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    let temporary = beside(path, &format!(".{}.tmp", uuid::Uuid::new_v4().simple()));
    write_through(path, &temporary, |out| out.write_all(bytes))?;
    remove_abandoned(path);
    Ok(())
}

/// The age after which a temporary file is abandoned: no write takes that long.
const ABANDONED: Duration = Duration::from_secs(3_600);

fn remove_abandoned(path: &Path) {
    for (suffix, beside) in list_beside(path) {
        let written = || std::fs::symlink_metadata(&beside).and_then(|found| found.modified());
        let age = || written().ok()?.elapsed().ok();
        if is_temporary(&suffix) && age().is_some_and(|age| age > ABANDONED) {
            // Best effort: the next call tries again.
            let _ = std::fs::remove_file(beside);
        }
    }
}

fn write_through(
    path: &Path,
    temporary: &Path,
    write: impl FnOnce(&mut io::BufWriter<File>) -> io::Result<()>,
) -> Result<()> {
    let put = || {
        let file = private().write(true).create_new(true).open(temporary)?;
        let mut out = io::BufWriter::with_capacity(256 << 10, file);
        write(&mut out)?;
        out.flush()?;
        out.get_ref().sync_all()?;
        std::fs::rename(temporary, path)
    };
    if let Err(e) = put() {
        // Best effort: the error that matters is the one being reported.
        let _ = std::fs::remove_file(temporary);
        return Err(io_error("cannot replace the file", path, e));
    }
    sync_dir(parent(path))
}

/// Removes a file. Returns whether it existed.
///
/// # Errors
///
/// If it exists and cannot be removed.
pub fn remove(path: &Path, operation: &'static str) -> Result<bool> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(io_error(operation, path, e)),
    }
}

/// Copies the torn line that begins at `start` to a new file `<file>.torn-<n>`, and syncs it.
///
/// # Errors
///
/// If the copy cannot be written. No partial copy is left.
pub fn copy_torn_tail(path: &Path, start: u64) -> Result<PathBuf> {
    let mut n = 1u32;
    let aside = loop {
        let aside = beside(path, &format!(".torn-{n}"));
        match copy_new(path, start, &aside) {
            Ok(()) => break aside,
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && n < u32::MAX => n += 1,
            Err(e) => return Err(io_error("cannot keep the torn line", &aside, e)),
        }
    };
    sync_dir(parent(path))?;
    Ok(aside)
}

/// Copies a file, from `start` on, to the new private file `to`, and syncs it.
///
/// # Errors
///
/// [`io::ErrorKind::AlreadyExists`], and errors from reading and writing. No partial copy is left.
pub fn copy_new(path: &Path, start: u64, to: &Path) -> io::Result<()> {
    let mut copy = private().write(true).create_new(true).open(to)?;
    let mut copy_all = || {
        let mut file = open(path)?;
        file.seek(SeekFrom::Start(start))?;
        io::copy(&mut file, &mut copy)?;
        copy.sync_all()
    };
    // Best effort: the error that matters is the one being reported.
    copy_all().inspect_err(|_| drop(std::fs::remove_file(to)))
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
        std::fs::write(temporary(&file), "of a writer that was killed").unwrap();
        replace(&file, |out| out.write_all(b"one")).unwrap();
        write_atomic(&file, b"two").unwrap();
        assert_eq!(read(&file).unwrap(), b"two");
        assert_eq!(std::fs::read_dir(&deep).unwrap().count(), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |p: &Path| std::fs::metadata(p).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&deep), mode(&file)), (0o700, 0o600));
        }
    }

    #[test]
    fn leftovers_of_a_killed_writer_are_removed_and_files_of_a_running_one_stay() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let (old, new) = (format!("f.{:032x}.tmp", 7), format!("f.{:032x}.tmp", 8));
        for name in [&old, &new, "f.kept.tmp", "g.tmp"] {
            let file = File::create(at(name)).unwrap();
            if *name != *new {
                file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
            }
        }
        write_atomic(&at("f"), b"x").unwrap();
        assert!(!at(&old).exists());
        assert!(["f", &new, "f.kept.tmp", "g.tmp"].iter().all(|name| at(name).exists()));
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
        let error = write_atomic(&taken, b"x").unwrap_err();
        assert!(error.to_string().contains("folder"), "{error}");
        std::fs::write(taken.join("f"), "old").unwrap();
        let full = |_: &mut io::BufWriter<File>| Err(io::ErrorKind::StorageFull.into());
        let error = replace(&taken.join("f"), full).unwrap_err();
        assert!(error.hint_text().is_some(), "{error}");
        assert_eq!(read(taken.join("f")).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(&taken).unwrap().count(), 1);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_named_pipe_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, mode).unwrap();
        let error = io_error("cannot read", &pipe, read_to_string(&pipe).unwrap_err());
        assert!(error.hint_text().is_some(), "{error}");
        assert!(open(dir.path()).is_ok(), "a folder is opened");
    }
}

//! Recovery after a crash: copying entries that only the journal has into the session files.

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};

use ctx_core::{ErrorKind, Result};

use super::pointer::{self, Pointer};
use super::record;
use crate::disk;
use crate::disk::{FileLock, sidecar_of};
use crate::log::{SharedFile, System};
use crate::paths::Home;

/// Completes the session files of a home from the journals of crashed processes. Returns the number
/// of session files that were completed or already complete. A session that is open in another
/// process is skipped.
///
/// Opening a session for appending does this for that session, and opening a group does it for all.
/// A read-only program can call it first, to see all stored entries even after a power cut.
pub fn recover_journals(home: &Home) -> Result<usize> {
    let dir = home.journals_dir();
    if !dir.is_dir() {
        return Ok(0);
    }
    let _dir_lock = FileLock::exclusive(&guard(&dir))?;
    sweep(&dir)
}

/// Returns the file to lock while journals of a folder are created or replayed.
pub(super) fn guard(dir: &Path) -> PathBuf {
    dir.join("journals")
}

/// Replays and removes the journals in `dir` whose processes have ended. The caller holds the
/// folder's lock.
pub(super) fn sweep(dir: &Path) -> Result<usize> {
    let failed = |e| disk::io_error("cannot list the journals", dir, e);
    let mut complete = 0;
    let mut first_error = None;
    for path in disk::list(dir).map_err(failed)? {
        if path.extension().is_none_or(|e| e != "journal") {
            continue;
        }
        match sweep_one(&path) {
            Ok(sessions) => complete += sessions,
            Err(error) => drop(first_error.get_or_insert(error)),
        }
    }
    first_error.map_or(Ok(complete), Err)
}

fn sweep_one(journal: &Path) -> Result<usize> {
    let failed = |e| disk::io_error("cannot read the journal", journal, e);
    let file = disk::open(journal).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(0),
        Err(TryLockError::Error(e)) => return Err(failed(e)),
    }
    let bytes = contents(&file).map_err(failed)?;
    record::check_version(&bytes).map_err(|e| e.with("path", journal.display()))?;
    let paths: BTreeSet<_> = record::read(&bytes).iter().map(|r| r.path).collect();
    let (mut sessions, mut is_busy) = (0, false);
    for path in paths.into_iter().filter_map(record::path_of) {
        match complete(&path, journal, &bytes)? {
            Some(true) => sessions += 1,
            Some(false) => is_busy = true,
            None => {}
        }
    }
    if !is_busy {
        std::fs::remove_file(journal)
            .map_err(|e| disk::io_error("cannot remove the journal", journal, e))?;
    }
    Ok(sessions)
}

/// Completes one session. Returns `false` if it is open elsewhere, `None` if the journal has no
/// claim on it.
fn complete(path: &Path, journal: &Path, bytes: &[u8]) -> Result<Option<bool>> {
    let sidecar = sidecar_of(path);
    // A deleted session stays deleted.
    if !path.exists() || !sidecar.exists() {
        return Ok(None);
    }
    let failed = |e| disk::io_error("cannot complete the session", path, e);
    let claims = |pointer: Option<Pointer>| {
        pointer.filter(|p| same_journal(&p.journal, journal)).map(|p| p.member)
    };
    match FileLock::try_exclusive(path) {
        Ok(lock) => {
            let Some(member) = claims(pointer::get(lock.sidecar()).map_err(failed)?) else {
                return Ok(None);
            };
            let file = File::options().read(true).write(true).open(path).map_err(failed)?;
            let file = SharedFile::new(file, Box::new(System));
            apply(&file, bytes, member).map_err(failed)?;
            file.sync().map_err(failed)?;
            pointer::clear(&lock)?;
            Ok(Some(true))
        }
        Err(e) if e.kind() == ErrorKind::Locked => {
            // The process that has it open removes the claim when the session is complete.
            let sidecar = disk::open(&sidecar).map_err(failed)?;
            Ok(claims(pointer::get(&sidecar).map_err(failed)?).map(|_| false))
        }
        Err(e) => Err(e),
    }
}

/// Compares the names of two journals, which are unique in any folder.
fn same_journal(a: &Path, b: &Path) -> bool {
    a.file_name() == b.file_name()
}

/// Replays one session's records. The caller holds the session's lock and syncs the file.
pub(super) fn replay(
    path: &Path,
    file: &SharedFile,
    journal: &File,
    journal_path: &Path,
    member: u64,
) -> Result<()> {
    let bytes = contents(journal)
        .map_err(|e| disk::io_error("cannot read the journal", journal_path, e))?;
    record::check_version(&bytes).map_err(|e| e.with("path", journal_path.display()))?;
    apply(file, &bytes, member).map_err(|e| disk::io_error("cannot complete the session", path, e))
}

fn contents(file: &File) -> std::io::Result<Vec<u8>> {
    disk::read_at(file, 0, u64::MAX)
}

/// Writes a member's records at their offsets, where a power cut may have left nothing, zeros, or
/// the beginning of the record. A record that is already there is written again: after a failed
/// sync it may be only in memory. If anything else is there, another program wrote it meanwhile:
/// then the record is appended, because no entry may be lost or overwritten.
fn apply(shared: &SharedFile, journal: &[u8], member: u64) -> std::io::Result<()> {
    let mut file = shared.get();
    for record in record::read(journal).into_iter().filter(|r| r.member == member) {
        let length = file.metadata()?.len();
        let there = disk::read_at(file, record.offset, record.data.len() as u64)?;
        let lost = there.iter().zip(record.data).all(|(is, was)| is == was || *is == 0);
        if record.offset <= length && lost {
            file.seek(SeekFrom::Start(record.offset))?;
        } else if let Some(at) = find(file, record.data)? {
            // An interrupted recovery already wrote it.
            file.seek(SeekFrom::Start(at))?;
        } else {
            if !disk::ends_line(file)? {
                shared.write_all(b"\n")?;
            }
        }
        shared.write_all(record.data)?;
    }
    Ok(())
}

/// Returns the offset of the bytes in the file.
fn find(file: &File, bytes: &[u8]) -> std::io::Result<Option<u64>> {
    Ok(memchr::memmem::find(&contents(file)?, bytes).map(|at| at as u64))
}

#[cfg(test)]
mod tests {
    use super::super::record::{FRAME_HEADER, JournalRecord, seal};
    use super::*;

    fn journal(records: &[(u64, u64, &str)]) -> Vec<u8> {
        let mut frame = vec![0; FRAME_HEADER];
        for &(member, offset, data) in records {
            let data = data.as_bytes();
            assert!(JournalRecord { member, offset, path: b"/s", data }.write(&mut frame));
        }
        seal(&mut frame, 1);
        frame
    }

    fn applied(before: &str, journal: &[u8]) -> String {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        std::fs::write(&path, before).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let file = SharedFile::new(file, Box::new(System));
        apply(&file, journal, 1).unwrap();
        let once = std::fs::read_to_string(&path).unwrap();
        apply(&file, journal, 1).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), once, "not idempotent");
        once
    }

    #[test]
    fn lost_bytes_come_back_and_present_ones_stay() {
        let journal = journal(&[(1, 2, "a\n"), (2, 0, "not mine"), (1, 4, "bc\n")]);
        for before in ["h\n", "h\na", "h\na\n", "h\na\nb", "h\na\nbc\n", "h\n\0\0\0", "h\na\n\0\0"]
        {
            assert_eq!(applied(before, &journal), "h\na\nbc\n", "{before:?}");
        }
        assert_eq!(applied("h\na\nbc\nlater\n", &journal), "h\na\nbc\nlater\n");
    }

    #[test]
    fn what_somebody_else_wrote_is_not_overwritten() {
        let journal = journal(&[(1, 2, "a\n"), (1, 4, "bc\n")]);
        assert_eq!(applied("h\nforeign\n", &journal), "h\nforeign\na\nbc\n");
        assert_eq!(applied("h\nforeign", &journal), "h\nforeign\na\nbc\n");
        assert_eq!(applied("", &journal), "a\nbc\n");
    }
}

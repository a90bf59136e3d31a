//! Recovery after a crash: copying lines that only the journal has into the files.

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};

use ctx_core::{ErrorKind, Result};

use super::pointer::{self, Pointer};
use super::record::{self, JournalRecord};
use crate::log::{OsMedium, SharedFile};
use crate::{FileLock, sidecar_of};

/// Completes files from the journals of crashed processes in `dir`. Returns the number of files
/// that were completed or already complete. A file that is open in another process is skipped.
///
/// Opening a file for appending does this for that file, and opening a group does it for all. A
/// read-only program can call it first, to see all stored lines even after a power cut.
///
/// # Errors
///
/// If a journal or a file cannot be read or written; the others are completed.
pub fn recover_journals(dir: &Path) -> Result<usize> {
    if !dir.is_dir() {
        return Ok(0);
    }
    let _dir_lock = FileLock::exclusive(&guard(dir))?;
    sweep(dir)
}

/// Returns the file to lock while journals of a folder are created or replayed.
pub(super) fn guard(dir: &Path) -> PathBuf {
    dir.join("journals")
}

/// Replays and removes the journals in `dir` whose processes have ended. The caller holds the
/// folder's lock.
pub(super) fn sweep(dir: &Path) -> Result<usize> {
    let failed = |e| crate::io_error("cannot list the journals", dir, e);
    let mut complete = 0;
    let mut first_error = None;
    for path in crate::list(dir).map_err(failed)? {
        if path.extension().is_none_or(|e| e != "journal") {
            continue;
        }
        match sweep_one(&path) {
            Ok(files) => complete += files,
            Err(error) => drop(first_error.get_or_insert(error)),
        }
    }
    first_error.map_or(Ok(complete), Err)
}

fn sweep_one(journal: &Path) -> Result<usize> {
    let failed = |e| crate::io_error("cannot read the journal", journal, e);
    let file = crate::open(journal).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(0),
        Err(TryLockError::Error(e)) => return Err(failed(e)),
    }
    let bytes = contents(&file).map_err(failed)?;
    let records = record::read(&bytes).map_err(|e| e.with("path", journal.display()))?;
    let paths: BTreeSet<_> = records.iter().map(|record| record.path).collect();
    let (mut files, mut is_busy) = (0, false);
    for path in paths.into_iter().filter_map(record::path_of) {
        match complete(&path, journal, &records)? {
            Some(true) => files += 1,
            Some(false) => is_busy = true,
            None => {}
        }
    }
    if !is_busy {
        std::fs::remove_file(journal)
            .map_err(|e| crate::io_error("cannot remove the journal", journal, e))?;
    }
    Ok(files)
}

/// Completes one file. Returns `false` if it is open elsewhere, `None` if the journal has no claim
/// on it.
fn complete(path: &Path, journal: &Path, records: &[JournalRecord<'_>]) -> Result<Option<bool>> {
    let sidecar = sidecar_of(path);
    // A deleted file stays deleted.
    if !path.exists() || !sidecar.exists() {
        return Ok(None);
    }
    let failed = |e| crate::io_error("cannot complete the session", path, e);
    // The names of journals are unique in any folder.
    let claims = |pointer: Option<Pointer>| {
        pointer.filter(|p| p.journal.file_name() == journal.file_name()).map(|p| p.member)
    };
    match FileLock::try_exclusive(path) {
        Ok(lock) => {
            let Some(member) = claims(pointer::get(lock.sidecar()).map_err(failed)?) else {
                return Ok(None);
            };
            let file = File::options().read(true).write(true).open(path).map_err(failed)?;
            let file = SharedFile::new(file, Box::new(OsMedium));
            apply(&file, records, member).map_err(failed)?;
            file.sync().map_err(failed)?;
            pointer::clear(&lock)?;
            Ok(Some(true))
        }
        Err(e) if e.kind() == ErrorKind::Locked => {
            // The process that has it open removes the claim when the file is complete.
            let sidecar = crate::open(&sidecar).map_err(failed)?;
            Ok(claims(pointer::get(&sidecar).map_err(failed)?).map(|_| false))
        }
        Err(e) => Err(e),
    }
}

fn contents(file: &File) -> std::io::Result<Vec<u8>> {
    crate::read_at(file, 0, u64::MAX)
}

/// Writes a member's records at their offsets, where a power cut may have left nothing, zeros, or
/// the beginning of the record. A record that is already there is written again: after a failed
/// sync it may be only in memory. If anything else is there, another program wrote it meanwhile:
/// then the record is appended, because no line may be lost or overwritten. The caller holds the
/// file's lock, and syncs it.
pub(super) fn apply(
    shared: &SharedFile,
    records: &[JournalRecord<'_>],
    member: u64,
) -> std::io::Result<()> {
    let mut file = shared.get();
    for record in records.iter().filter(|record| record.member == member) {
        let length = file.metadata()?.len();
        let there = crate::read_at(file, record.offset, record.data.len() as u64)?;
        let lost = there.iter().zip(record.data).all(|(is, was)| is == was || *is == 0);
        if record.offset <= length && lost {
            file.seek(SeekFrom::Start(record.offset))?;
        } else if let Some(at) = memchr::memmem::find(&contents(file)?, record.data) {
            // An interrupted recovery already wrote it.
            file.seek(SeekFrom::Start(at as u64))?;
        } else if !crate::ends_line(file)? {
            shared.write_all(b"\n")?;
        }
        shared.write_all(record.data)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::record::{FRAME_HEADER, JournalRecord, read, seal};
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
        let file = SharedFile::new(file, Box::new(OsMedium));
        let records = read(journal).unwrap();
        apply(&file, &records, 1).unwrap();
        let once = std::fs::read_to_string(&path).unwrap();
        apply(&file, &records, 1).unwrap();
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
    fn bytes_of_another_program_are_not_overwritten() {
        let journal = journal(&[(1, 2, "a\n"), (1, 4, "bc\n")]);
        assert_eq!(applied("h\nforeign\n", &journal), "h\nforeign\na\nbc\n");
        assert_eq!(applied("h\nforeign", &journal), "h\nforeign\na\nbc\n");
        assert_eq!(applied("", &journal), "a\nbc\n");
    }
}

//! The content of the disk when syncs fail.

use std::io::{self, Write};
use std::sync::Mutex;

use super::*;
use crate::recover_journals;

/// A simulated disk with the behaviour of the kernel: a failed sync is reported once, and the lost
/// bytes are not retried until they are written again.
#[derive(Clone, Debug, Default)]
struct Disk(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    stored: Vec<u8>,
    written: Vec<(usize, Vec<u8>)>,
    failures: usize,
}

impl Medium for Disk {
    fn write(&self, mut file: &File, bytes: &[u8]) -> io::Result<()> {
        let at = file.stream_position()? as usize;
        let mut state = self.0.lock().unwrap();
        file.write_all(bytes)?;
        state.written.push((at, bytes.to_vec()));
        Ok(())
    }

    fn sync(&self, _: &File) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        let written = std::mem::take(&mut state.written);
        if state.failures > 0 {
            state.failures -= 1;
            return Err(io::Error::other("the disk failed"));
        }
        for (at, bytes) in written {
            let end = at + bytes.len();
            if state.stored.len() < end {
                state.stored.resize(end, 0);
            }
            state.stored[at..end].copy_from_slice(&bytes);
        }
        Ok(())
    }
}

impl Disk {
    fn fail(&self, syncs: usize) {
        self.0.lock().unwrap().failures = syncs;
    }

    /// Returns the number of requested failures that have not occurred yet.
    fn failures(&self) -> usize {
        self.0.lock().unwrap().failures
    }

    fn stored(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().stored.clone()).unwrap()
    }
}

const ROUND: u64 = 20_000;

/// A session in a group, and its expected content.
struct Session {
    log: LogFile,
    disk: Disk,
    path: PathBuf,
    expected: String,
}

impl Session {
    fn append(&mut self, length: usize) -> ctx_core::Result<()> {
        let line = format!("{{\"n\":{},\"x\":\"{}\"}}\n", self.log.len, "x".repeat(length));
        self.log.append(line.as_bytes())?;
        self.expected += &line;
        self.log.commit()
    }

    fn claimed(&self) -> bool {
        std::fs::metadata(crate::sidecar_of(&self.path)).unwrap().len() > 0
    }
}

struct Setup {
    dir: tempfile::TempDir,
    group: Arc<GroupCommit>,
}

impl Setup {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let group = GroupCommit::with_round(&dir.path().join("journals"), ROUND).unwrap();
        Self { dir, group }
    }

    fn session(&self, name: &str) -> Session {
        let (disk, path) = (Disk::default(), self.dir.path().join(name));
        let header = "{\"header\":1}\n";
        let mut log = LogFile::create_on(&path, header.as_bytes(), Box::new(disk.clone())).unwrap();
        log.join(&self.group).unwrap();
        Session { log, disk, path, expected: header.to_owned() }
    }
}

/// Appends until a round ends, which triggers the failures requested of `failing`.
fn end_round(writer: &mut Session, failing: &Disk) {
    for _ in 0..ROUND / 300 {
        if failing.failures() == 0 {
            return;
        }
        writer.append(300).unwrap();
    }
    panic!("no round has ended");
}

#[test]
fn a_round_whose_sync_fails_loses_nothing() {
    let setup = Setup::new();
    let (mut a, mut b) = (setup.session("a"), setup.session("b"));
    for _ in 0..10 {
        a.append(100).unwrap();
        b.append(100).unwrap();
    }
    assert_ne!(a.disk.stored(), a.expected, "only the journal has them");
    a.disk.fail(1);
    let failing = a.disk.clone();
    end_round(&mut a, &failing);
    assert_eq!(a.disk.stored(), a.expected);
    assert!(!a.claimed());
    b.append(1).unwrap();
    assert_eq!(b.disk.stored(), b.expected);
    a.append(1).unwrap();
    assert_eq!(a.disk.stored(), a.expected);
}

#[test]
fn a_session_learns_that_its_sync_failed_in_another_commit() {
    let setup = Setup::new();
    let (mut a, mut b) = (setup.session("a"), setup.session("b"));
    a.append(100).unwrap();
    a.disk.fail(1);
    end_round(&mut b, &a.disk);
    assert_ne!(a.disk.stored(), a.expected);
    a.log.close().unwrap();
    assert_eq!(a.disk.stored(), a.expected);
    assert_eq!(b.disk.stored(), b.expected);
    assert!(!a.claimed() && !b.claimed());
}

#[test]
fn a_failed_own_sync_loses_nothing_that_the_journal_has() {
    let setup = Setup::new();
    let mut a = setup.session("a");
    a.append(100).unwrap();
    a.disk.fail(1);
    // Too large for the journal, so the file itself is synced.
    a.append(300 << 10).unwrap_err();
    a.log.commit().unwrap();
    assert_eq!(a.disk.stored(), a.expected);

    // The same, but the entry is rolled back, and the next rounds do not rely on that sync.
    let mut b = setup.session("b");
    b.append(100).unwrap();
    let (before, len) = (b.expected.clone(), b.log.len);
    b.disk.fail(1);
    b.append(300 << 10).unwrap_err();
    b.log.truncate_to(len).unwrap();
    b.expected = before;
    for _ in 0..2 * ROUND / 300 {
        a.append(300).unwrap();
    }
    b.append(100).unwrap();
    b.log.close().unwrap();
    assert_eq!(b.disk.stored()[..b.expected.len()], b.expected);
}

#[test]
fn journal_entries_of_a_broken_log_are_restored_when_it_is_reopened() {
    let setup = Setup::new();
    let (mut a, mut b) = (setup.session("a"), setup.session("b"));
    a.append(100).unwrap();
    // Syncs fail at the end of the round, when `a` leaves the group, and when it is opened again.
    a.disk.fail(1);
    end_round(&mut b, &a.disk);
    a.disk.fail(2);
    a.log.close().unwrap_err();
    assert!(a.claimed());
    let error = a.log.append(b"{}\n").unwrap_err();
    assert!(error.hint_text().is_some_and(|h| h.contains("open the session again")), "{error}");
    let Session { log, disk, path, mut expected } = a;
    drop(log);

    let open = || LogFile::open_on(&path, |_| Ok(()), Box::new(disk.clone()));
    open().unwrap_err();
    let mut again = open().unwrap();
    assert_eq!(disk.stored(), expected);
    again.append(b"{}\n").unwrap();
    again.close().unwrap();
    expected += "{}\n";
    assert_eq!(disk.stored(), expected);
    drop((again, b, setup.group));
    let dir = setup.dir.path().join("journals");
    recover_journals(&dir).unwrap();
    let journals = std::fs::read_dir(dir).unwrap();
    let journals =
        journals.filter(|f| f.as_ref().unwrap().path().extension().unwrap() == "journal");
    assert_eq!(journals.count(), 0);
}

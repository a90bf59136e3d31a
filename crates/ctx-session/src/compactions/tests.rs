//! A full disk: if a compaction or its undo cannot be stored, all files stay unchanged.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use ctx_core::{Compacted, EntryId, ErrorKind, RawJson, Timestamp, Tokens};

use super::store::store_in;
use super::store_compaction;
use super::target::StorageTarget;
use super::undo::undo_in;
use crate::disk::{LogFile, Medium};
use crate::log::tests::new_session;
use crate::log::{Durability, LogOptions, SessionLog};
use crate::overlay::Overlay;
use crate::paths::Home;
use crate::schema::NewEntry;
use crate::transcript::Transcript;

const NOW: Timestamp = Timestamp(1);

/// A disk that is full after so many bytes, or whose next syncs fail.
#[derive(Clone, Debug, Default)]
struct Disk(Arc<Mutex<DiskState>>);

#[derive(Debug, Default)]
struct DiskState {
    space: Option<usize>,
    failures: usize,
}

impl Disk {
    fn fail(&self, syncs: usize) {
        self.0.lock().unwrap().failures = syncs;
    }

    /// Limits the remaining space in bytes, or removes the limit.
    fn limit(&self, space: Option<usize>) {
        self.0.lock().unwrap().space = space;
    }
}

impl Medium for Disk {
    fn write(&self, mut file: &File, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        let fits = state.space.map_or(bytes.len(), |space| space.min(bytes.len()));
        file.write_all(&bytes[..fits])?;
        state.space = state.space.map(|space| space - fits);
        if fits < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn sync(&self, _: &File) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        if state.failures > 0 {
            state.failures -= 1;
            return Err(io::Error::other("the disk failed"));
        }
        Ok(())
    }
}

struct Setup {
    _dir: tempfile::TempDir,
    home: Home,
    path: PathBuf,
    ours: bool,
    disk: Disk,
}

impl Setup {
    fn new(ours: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (home, path) = (Home::at(dir.path().join("home")), dir.path().join("s.jsonl"));
        let mut log = new_session(&path, LogOptions::default());
        for text in ["one", "two", "three"] {
            let message = format!(r#"{{"role":"user","content":"{text}"}}"#);
            log.append(&NewEntry::message(RawJson::from_text(message)), NOW).unwrap();
        }
        log.close().unwrap();
        if !ours {
            let text = std::fs::read_to_string(&path).unwrap().replace(r#","ctx":1"#, "");
            std::fs::write(&path, text).unwrap();
        }
        let setup = Self { _dir: dir, home, path, ours, disk: Disk::default() };
        // The harder case is an overlay that exists already.
        store_compaction(&setup.home, &setup.path, None, &setup.compacted(), NOW).unwrap();
        setup
    }

    fn compacted(&self) -> Compacted {
        let line = Transcript::open(&self.path).unwrap().main_line().unwrap();
        Compacted {
            summary: "sum".into(),
            first_kept_entry_id: line[1].entry.id().clone(),
            tokens_before: Tokens(3),
            tokens_after: None,
            details: None,
            staying: Vec::new(),
            projections: Vec::new(),
        }
    }

    fn open(&self) -> Transcript {
        crate::overlay::open(&self.home, &self.path).unwrap()
    }

    fn place(&self) -> StorageTarget {
        let disk = Box::new(self.disk.clone());
        if self.ours {
            let options = LogOptions { durability: Durability::PerEntry, ..LogOptions::default() };
            return StorageTarget::Session(Box::new(
                SessionLog::open_on(&self.path, options, disk).unwrap(),
            ));
        }
        let overlay = Overlay::of(&self.home, &self.path).unwrap();
        let file = LogFile::open_on(&overlay.path, |_| Ok(()), disk).unwrap();
        StorageTarget::Overlay(Box::new(file))
    }

    fn files(&self) -> [Option<Vec<u8>>; 2] {
        let overlay = Overlay::of(&self.home, &self.path).unwrap();
        [&*self.path, &overlay.path].map(|path| std::fs::read(path).ok())
    }

    fn store(&self) -> ctx_core::Result<EntryId> {
        store_in(self.place(), &self.open(), &self.path, None, &self.compacted(), NOW)
    }

    fn undo(&self) -> ctx_core::Result<EntryId> {
        undo_in(self.place(), &self.open(), &self.path, None, NOW).map(|undone| undone.unwrap().id)
    }
}

#[test]
fn a_compaction_or_undo_that_does_not_fit_on_disk_changes_no_file() {
    for ours in [true, false] {
        let setup = Setup::new(ours);
        for what in [Setup::store, Setup::undo] {
            let before = setup.files();
            let context = setup.open().context(None).unwrap().compaction;
            for bytes in [0, 1, 20, 100] {
                setup.disk.limit(Some(bytes));
                let error = what(&setup).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Io, "{error}");
                let hint = error.hint_text().unwrap();
                assert!(hint.contains("disk space"), "{hint}");
                assert_eq!(setup.files(), before, "{bytes} bytes");
                assert_eq!(setup.open().context(None).unwrap().compaction, context);
            }
            // All bytes are written, but the sync fails.
            setup.disk.limit(None);
            setup.disk.fail(1);
            let error = what(&setup).unwrap_err();
            assert!(error.hint_text().is_some_and(|hint| hint.contains("try again")), "{error}");
            assert_eq!(setup.files(), before);
            what(&setup).unwrap();
            assert_ne!(setup.open().context(None).unwrap().compaction, context);
        }
    }
}

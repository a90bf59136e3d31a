//! What was cut of a conversation, kept on disk.
//!
//! A conversation of which nothing was cut has no file: it is made anew from the next request, with
//! the same ids. From the first cut on its file says which messages it had, in which forms they were
//! sent, and which compaction is in force. It holds what was written in the place of messages, and
//! of the messages themselves ids and hashes.

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use ctx_core::{Compacted, ContentHash, EntryId, Error, ErrorKind, Projection, Result};
use serde::{Deserialize, Serialize};

use super::told::Known;
use crate::hosted::InForce;
use crate::private::{self, Files};

/// Bytes of all files together; beyond that the one goes that was changed longest ago.
const MOST_BYTES: u64 = 256 << 20;

/// How many conversations have files.
const MOST_FILES: usize = 4_000;

/// How many changes may wait to be written.
const WAITING: usize = 256;

/// So long a conversation that comes back from disk waits for what is still to be written of it.
const PATIENCE: Duration = Duration::from_secs(5);

/// A longer line is none of ours.
const MAX_LINE: u64 = 256 << 20;

/// A line of a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Line {
    /// From this message on the history is so.
    Told { from: usize, items: Vec<Item> },
    /// A form that a message was sent in.
    Form(Box<Projection>),
    /// The compaction in force; null where one was taken back or no longer fits.
    Compaction(Option<Box<Kept>>),
    /// What the provider counted, and what that was estimated at.
    Reported(u64, u64),
}

/// A message.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Item(EntryId, ContentHash, bool);

impl Item {
    pub(super) fn of(known: &Known) -> Self {
        Self(known.id.clone(), known.hash, known.is_instruction)
    }
}

/// A compaction.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Kept {
    entry_id: EntryId,
    first_kept: EntryId,
    staying: Vec<EntryId>,
    covered: Vec<EntryId>,
    compacted: Compacted,
}

impl Kept {
    pub(super) fn of(in_force: &InForce) -> Self {
        Self {
            entry_id: in_force.id.clone(),
            first_kept: in_force.first_kept.clone(),
            staying: in_force.staying.iter().cloned().collect(),
            covered: in_force.covered.iter().cloned().collect(),
            compacted: in_force.compacted.clone(),
        }
    }

    fn into_force(self) -> InForce {
        InForce {
            id: self.entry_id,
            first_kept: self.first_kept,
            staying: self.staying.into_iter().collect::<HashSet<_>>(),
            covered: self.covered.into_iter().collect(),
            compacted: self.compacted,
        }
    }
}

/// What a file says.
#[derive(Clone, Debug, Default)]
pub(super) struct Saved {
    pub(super) known: Vec<Known>,
    pub(super) forms: Vec<Projection>,
    pub(super) in_force: Option<InForce>,
    pub(super) reported: Option<(u64, u64)>,
    /// The number of the next id that is made.
    pub(super) made: u32,
}

impl Saved {
    /// What a line says of it.
    fn take(&mut self, line: Line) {
        match line {
            // A line before this one is missing: what these messages follow is not known.
            Line::Told { from, items } => {
                let is_whole = from <= self.known.len();
                self.known.truncate(from);
                for Item(id, hash, is_instruction) in items {
                    let number = u32::from_str_radix(&id, 16).unwrap_or_default();
                    // No id is made twice, whatever it named.
                    self.made = self.made.max(number.saturating_add(1));
                    if is_whole {
                        self.known.push(Known { id, mark: None, hash, is_instruction });
                    }
                }
            }
            Line::Form(form) => self.forms.push(*form),
            Line::Compaction(kept) => self.in_force = kept.map(|kept| kept.into_force()),
            Line::Reported(reported, estimated) => self.reported = Some((reported, estimated)),
        }
    }

    /// What holds for a history in which those ids are known: a compaction only if all that it speaks
    /// of is there.
    pub(super) fn within(mut self, ids: &[Option<EntryId>]) -> Self {
        let ids: HashSet<&EntryId> = ids.iter().flatten().collect();
        self.in_force = self.in_force.filter(|kept| kept.is_within(&ids));
        self
    }
}

enum Work {
    Append(String, Vec<Line>),
    Settle(SyncSender<()>),
}

/// What requests and the thread that writes tell each other beside the queue.
#[derive(Debug, Default)]
struct Beside {
    /// Conversations of which something could not be written.
    unwritten: Mutex<HashSet<String>>,
    lost: AtomicU64,
}

impl Beside {
    fn unwritten(&self) -> MutexGuard<'_, HashSet<String>> {
        self.unwritten.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lose(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }
}

/// The folder, and the thread that writes there.
#[derive(Debug)]
pub(super) struct Keep {
    folder: PathBuf,
    /// Nobody else writes there meanwhile: the ids of two servers count up alike, and name different
    /// messages.
    _held: fs::File,
    work: SyncSender<Work>,
    beside: Arc<Beside>,
}

/// What became of lines that were to be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Added {
    /// They will be written.
    Passed,
    /// They are left out, and so is what follows them until all of the conversation is told again.
    Lost,
}

impl Keep {
    /// Keeps conversations in a folder.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Locked`] where another server does, [`ErrorKind::Io`] where nobody can.
    pub(super) fn at(folder: &Path) -> Result<Self> {
        let failed = |what: &'static str| {
            let path = folder.display().to_string();
            move |error: std::io::Error| {
                Error::new(ErrorKind::Io, what)
                    .with("path", path)
                    .hint("set CTX_HOME to a folder that can be written to")
                    .source(error)
            }
        };
        private::folder(folder).map_err(failed("conversations cannot be kept"))?;
        let held = private::hold(folder).map_err(failed("conversations cannot be kept"))?;
        let Some(held) = held else {
            let what = "another `ctx serve` keeps conversations in this home";
            return Err(Error::new(ErrorKind::Locked, what)
                .with("path", folder.display())
                .hint("give each server a $CTX_HOME of its own"));
        };
        let (work, todo) = sync_channel(WAITING);
        let beside = Arc::<Beside>::default();
        let mut writer = Writer {
            folder: folder.to_owned(),
            files: Files::default(),
            torn: HashSet::new(),
            beside: beside.clone(),
        };
        thread::Builder::new()
            .name("ctx-proxy-keep".to_owned())
            .spawn(move || writer.run(&todo))
            .map_err(failed("no thread can be started"))?;
        Ok(Self { folder: folder.to_owned(), _held: held, work, beside })
    }

    /// How many changes were not written: there was no room in the queue, or on the disk.
    pub(super) fn lost(&self) -> u64 {
        self.beside.lost.load(Ordering::Relaxed)
    }

    /// The conversations that have files, by their ids.
    pub(super) fn ids(&self) -> Vec<String> {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        files.filter_map(|file| id_of(&file.path())).collect()
    }

    /// Adds lines to a conversation's file. It waits for no disk: where the queue is full, or what came
    /// before was not written, the lines are left out.
    pub(super) fn append(&self, id: &str, lines: Vec<Line>) -> Added {
        if self.beside.unwritten().remove(id) {
            return Added::Lost;
        }
        if self.work.try_send(Work::Append(id.to_owned(), lines)).is_err() {
            self.beside.lose();
            return Added::Lost;
        }
        Added::Passed
    }

    /// What a conversation's file says. It reads a file.
    pub(super) fn read(&self, id: &str) -> Option<Saved> {
        let (done, settled) = sync_channel(1);
        if self.work.try_send(Work::Settle(done)).is_ok() {
            // What was not written by then is known to a conversation that is let go of, and to nobody
            // else: it is cut anew.
            let _ = settled.recv_timeout(PATIENCE);
        }
        let file = ctx_disk::open(file_of(&self.folder, id)).ok()?;
        let (mut file, mut line) = (BufReader::new(file), Vec::new());
        let mut saved = Saved::default();
        loop {
            line.clear();
            if (&mut file).take(MAX_LINE).read_until(b'\n', &mut line).ok()? == 0 {
                return Some(saved);
            }
            // A line that was cut off says nothing; the next request makes anew what it lacks.
            if let Ok(line) = serde_json::from_slice(&line) {
                saved.take(line);
            }
        }
    }

    /// Waits until all that was passed on so far is written.
    pub(super) fn settle(&self) {
        let (done, settled) = sync_channel(1);
        if self.work.send(Work::Settle(done)).is_ok() {
            let _ = settled.recv();
        }
    }
}

struct Writer {
    folder: PathBuf,
    files: Files,
    /// Conversations whose files may end in the middle of a line.
    torn: HashSet<String>,
    beside: Arc<Beside>,
}

impl Writer {
    fn run(&mut self, todo: &Receiver<Work>) {
        self.files = Files::of(&self.folder, id_of);
        while let Ok(work) = todo.recv() {
            match work {
                Work::Append(id, lines) => self.append(id, &lines),
                Work::Settle(done) => drop(done.send(())),
            }
        }
    }

    fn append(&mut self, id: String, lines: &[Line]) {
        let mut text = Vec::new();
        if self.torn.remove(&id) {
            text.push(b'\n');
        }
        for line in lines {
            if serde_json::to_writer(&mut text, line).is_ok() {
                text.push(b'\n');
            }
        }
        let path = file_of(&self.folder, &id);
        let written = private::append(&path).and_then(|mut file| file.write_all(&text));
        if written.is_err() {
            self.beside.lose();
            self.beside.unwritten().insert(id.clone());
            self.torn.insert(id);
            return;
        }
        self.files.grew(&id, text.len() as u64);
        for id in self.files.over(MOST_BYTES, MOST_FILES, &id) {
            let _ = fs::remove_file(file_of(&self.folder, &id));
        }
    }
}

fn file_of(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.jsonl"))
}

fn id_of(path: &Path) -> Option<String> {
    let is_ours = path.extension().is_some_and(|ending| ending == "jsonl");
    let name = path.file_stem().filter(|_| is_ours)?.to_str()?;
    let is_plain = name.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    is_plain.then(|| name.to_owned())
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::OpenOptions;
    use std::process::Command;

    use super::*;

    fn told(from: usize, count: usize) -> Line {
        let hash = ContentHash::of(&ctx_core::Message::text(ctx_core::Role::User, "hi"));
        let item = |n| Item(format!("{n:08x}").into(), hash, false);
        Line::Told { from, items: (from..from + count).map(item).collect() }
    }

    #[test]
    fn a_disk_that_stalls_holds_nobody_up_and_what_is_lost_is_counted() {
        let home = tempfile::tempdir().unwrap();
        let keep = Keep::at(home.path()).unwrap();
        // A pipe that nobody reads: to open it takes for ever.
        let pipe = home.path().join("aa-bb.jsonl");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let added: Vec<Added> =
            (0..WAITING + 10).map(|n| keep.append("aa-bb", vec![told(n, 1)])).collect();
        assert_eq!(added.first(), Some(&Added::Passed));
        assert_eq!(added.last(), Some(&Added::Lost));
        let lost = added.iter().filter(|added| **added == Added::Lost).count();
        assert!((9..=10).contains(&lost), "{lost}");
        assert_eq!(keep.lost(), lost as u64);
        // Somebody reads it after all, so that the thread can end.
        let mut reader = OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
        keep.settle();
        assert!(reader.read(&mut [0; 64]).unwrap() > 0);
    }

    #[test]
    fn what_was_not_written_is_told_again_from_its_beginning() {
        let home = tempfile::tempdir().unwrap();
        let keep = Keep::at(home.path()).unwrap();
        let path = home.path().join("aa-cc.jsonl");
        fs::create_dir(&path).unwrap();
        assert_eq!(keep.append("aa-cc", vec![told(0, 2)]), Added::Passed);
        keep.settle();
        assert_eq!((keep.append("aa-cc", vec![told(2, 2)]), keep.lost()), (Added::Lost, 1));
        fs::remove_dir(&path).unwrap();
        keep.append("aa-cc", vec![told(0, 5)]);
        assert_eq!(keep.read("aa-cc").unwrap().known.len(), 5);
        // A line that lacks the one before it says nothing.
        keep.append("aa-cc", vec![told(7, 1)]);
        let saved = keep.read("aa-cc").unwrap();
        assert_eq!((saved.known.len(), saved.made), (5, 8));
    }
}

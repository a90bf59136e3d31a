//! The stored form of a conversation's cuts, and the files with it.
//!
//! A conversation without cuts has no file: the next request rebuilds it with the same ids. From
//! the first cut on, its file records its messages, their projections, and the compaction in force.
//! Messages are recorded as ids and hashes without content. Replacements are recorded with content.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fs, thread};

use ctx_core::{ContentHash, EntryId, Error, ErrorKind, Projection, Result};
use ctx_disk::lru::{self, FolderLock, LruFiles, file_of, unwritable};
use ctx_hosted::InForce;
use serde::{Deserialize, Serialize};

use super::retrieval::AnsweredCalls;
use super::units::KnownMessage;

/// Maximum size of all files; beyond it, the least recently changed files are deleted.
const MOST_BYTES: u64 = 256 << 20;

/// Maximum number of files.
const MOST_FILES: usize = 4_000;

/// Capacity of the write queue.
const WAITING: usize = 256;

/// How long a reloaded conversation waits for its pending writes.
const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum line length; longer lines are invalid.
const MAX_LINE: u64 = 256 << 20;

/// A line of a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum StoredLine {
    /// Replaces the history from this index on.
    #[serde(rename = "told")]
    Messages { from: usize, items: Vec<StoredMessage> },
    /// A projection.
    #[serde(rename = "form")]
    Projection(Box<Projection>),
    /// The compaction in force; null if it was undone or no longer matches.
    Compaction(Option<Box<InForce>>),
    /// The provider's count, and the estimate for the same request.
    Reported(u64, u64),
    /// Calls of ctx's tools with their results, and what they came together with.
    Postponed(String, AnsweredCalls),
}

/// A message.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredMessage(EntryId, ContentHash, bool);

impl StoredMessage {
    pub(super) fn of(known: &KnownMessage) -> Self {
        Self(known.id.clone(), known.hash, known.is_instruction)
    }
}

/// The content of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct SavedConversation {
    pub(super) known: Vec<KnownMessage>,
    pub(super) projections: Vec<Projection>,
    pub(super) in_force: Option<InForce>,
    pub(super) reported: Option<(u64, u64)>,
    pub(super) postponed: Vec<(String, AnsweredCalls)>,
    /// The number of the next generated id.
    pub(super) next_id: u32,
    /// The number of its lines.
    pub(super) lines: u64,
}

impl SavedConversation {
    /// Returns the conversation with these lines.
    pub(super) fn of(lines: &[Vec<u8>]) -> Self {
        let mut saved = Self::default();
        lines.iter().for_each(|line| saved.take_bytes(line));
        saved
    }

    /// Applies a line.
    fn take(&mut self, line: StoredLine) {
        match line {
            // If a preceding line is missing, the messages before these are unknown.
            StoredLine::Messages { from, items } => {
                let is_whole = from <= self.known.len();
                self.known.truncate(from);
                for StoredMessage(id, hash, is_instruction) in items {
                    let number = u32::from_str_radix(&id, 16).unwrap_or_default();
                    // Ids are never reused.
                    self.next_id = self.next_id.max(number.saturating_add(1));
                    if is_whole {
                        self.known.push(KnownMessage { id, digest: None, hash, is_instruction });
                    }
                }
            }
            StoredLine::Projection(form) => self.projections.push(*form),
            StoredLine::Compaction(kept) => self.in_force = kept.map(|kept| *kept),
            StoredLine::Reported(reported, estimated) => {
                self.reported = Some((reported, estimated));
            }
            StoredLine::Postponed(beside, answered) => {
                self.postponed.retain(|(known, _)| *known != beside);
                self.postponed.push((beside, answered));
            }
        }
    }

    /// Applies a line in its stored form. A truncated one is ignored; the next request restores its
    /// content.
    fn take_bytes(&mut self, line: &[u8]) {
        self.lines += 1;
        if let Ok(line) = serde_json::from_slice(line) {
            self.take(line);
        }
    }

    /// Returns the state for a history with those ids: a compaction is kept only if the history
    /// contains all messages it refers to.
    pub(super) fn within(mut self, ids: &[Option<EntryId>]) -> Self {
        let ids: HashSet<&EntryId> = ids.iter().flatten().collect();
        self.in_force = self.in_force.filter(|kept| kept.is_within(&ids));
        self
    }
}

enum StoreTask {
    Append(String, Vec<StoredLine>),
    Settle(SyncSender<()>),
}

/// State shared with the writer thread, beside the queue.
#[derive(Debug, Default)]
struct WriterStatus {
    /// Conversations with failed writes.
    unwritten: Mutex<HashSet<String>>,
    lost: AtomicU64,
}

impl WriterStatus {
    fn unwritten(&self) -> MutexGuard<'_, HashSet<String>> {
        self.unwritten.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lose(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }
}

/// The folder, and its writer thread.
#[derive(Debug)]
pub(super) struct ConversationStore {
    folder: PathBuf,
    /// The folder's lock: two servers would assign the same ids to different messages.
    lock: FolderLock,
    queue: SyncSender<StoreTask>,
    status: Arc<WriterStatus>,
}

/// The result of appending lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queued {
    /// They will be written.
    Passed,
    /// They and later lines are dropped until the whole conversation is written again.
    Lost,
}

impl ConversationStore {
    /// Opens a folder for conversations.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Locked`] if another server uses it, [`ErrorKind::Io`] if it is not writable.
    pub(super) fn at(folder: &Path) -> Result<Self> {
        let failed = |what| unwritable(what, folder);
        lru::create_folder(folder).map_err(failed("cannot store conversations"))?;
        let lock = FolderLock::of(folder).map_err(failed("cannot store conversations"))?;
        let lock = lock.map_err(|holder| {
            Error::new(ErrorKind::Locked, "another `ctx serve` stores its conversations there")
                .with("path", folder.display())
                .with("server", holder)
                .hint("give each server its own $CTX_HOME")
        })?;
        let (queue, tasks) = sync_channel(WAITING);
        let status = Arc::<WriterStatus>::default();
        let mut writer = Writer {
            folder: folder.to_owned(),
            files: LruFiles::default(),
            torn: HashSet::new(),
            status: status.clone(),
        };
        thread::Builder::new()
            .name("ctx-proxy-keep".to_owned())
            .spawn(move || writer.run(&tasks))
            .map_err(failed("cannot start a thread"))?;
        Ok(Self { folder: folder.to_owned(), lock, queue, status })
    }

    /// Writes where this server listens, for another one with the same home.
    pub(super) fn announce(&self, url: &str) {
        // Best effort: without it, the other one knows the process.
        let _ = self.lock.name(&format!("process {} at {url}", std::process::id()));
    }

    /// Returns the number of lost changes: the queue or the disk was full.
    pub(super) fn lost(&self) -> u64 {
        self.status.lost.load(Ordering::Relaxed)
    }

    /// Returns the ids of the conversations with files.
    pub(super) fn ids(&self) -> Vec<String> {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        files.filter_map(|file| id_of(&file.path())).collect()
    }

    /// Appends lines to a conversation's file without waiting for the disk: if the queue is full,
    /// or an earlier write failed, the lines are dropped.
    pub(super) fn append(&self, id: &str, lines: Vec<StoredLine>) -> Queued {
        if self.status.unwritten().remove(id) {
            return Queued::Lost;
        }
        if self.queue.try_send(StoreTask::Append(id.to_owned(), lines)).is_err() {
            self.status.lose();
            return Queued::Lost;
        }
        Queued::Passed
    }

    /// Reads a conversation's file.
    pub(super) fn read(&self, id: &str) -> Option<SavedConversation> {
        let (done, settled) = sync_channel(1);
        if self.queue.try_send(StoreTask::Settle(done)).is_ok() {
            // Writes still pending after this are missing from the result, so it is cut again.
            let _ = settled.recv_timeout(PATIENCE);
        }
        let file = ctx_disk::open(file_of(&self.folder, id)).ok()?;
        let (mut file, mut line) = (BufReader::new(file), Vec::new());
        let mut saved = SavedConversation::default();
        loop {
            line.clear();
            if (&mut file).take(MAX_LINE).read_until(b'\n', &mut line).ok()? == 0 {
                return Some(saved);
            }
            saved.take_bytes(&line);
        }
    }

    /// Waits until all queued lines are written.
    pub(super) fn settle(&self) {
        let (done, settled) = sync_channel(1);
        if self.queue.send(StoreTask::Settle(done)).is_ok() {
            let _ = settled.recv();
        }
    }
}

struct Writer {
    folder: PathBuf,
    files: LruFiles,
    /// Conversations whose files may end in the middle of a line.
    torn: HashSet<String>,
    status: Arc<WriterStatus>,
}

impl Writer {
    fn run(&mut self, tasks: &Receiver<StoreTask>) {
        self.files = LruFiles::of(&self.folder, id_of);
        while let Ok(queue) = tasks.recv() {
            match queue {
                StoreTask::Append(id, lines) => self.append(id, &lines),
                StoreTask::Settle(done) => drop(done.send(())),
            }
        }
    }

    fn append(&mut self, id: String, lines: &[StoredLine]) {
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
        let written = lru::open_append(&path).and_then(|mut file| file.write_all(&text));
        if written.is_err() {
            self.status.lose();
            self.status.unwritten().insert(id.clone());
            self.torn.insert(id);
            return;
        }
        self.files.record_use(&id, text.len() as u64);
        for id in self.files.evict(MOST_BYTES, MOST_FILES, &id) {
            let _ = fs::remove_file(file_of(&self.folder, &id));
        }
    }
}

fn id_of(path: &Path) -> Option<String> {
    let is_plain = |id: &String| id.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    lru::id_of(path).filter(is_plain)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::process::Command;

    use super::*;

    fn messages(from: usize, count: usize) -> StoredLine {
        let hash = ContentHash::of(&ctx_core::Message::text(ctx_core::Role::User, "hi"));
        let item = |n| StoredMessage(format!("{n:08x}").into(), hash, false);
        StoredLine::Messages { from, items: (from..from + count).map(item).collect() }
    }

    #[test]
    fn a_stalled_disk_blocks_no_caller_and_losses_are_counted() {
        let home = tempfile::tempdir().unwrap();
        let keep = ConversationStore::at(home.path()).unwrap();
        // Opening a pipe without a reader blocks.
        let pipe = home.path().join("aa-bb.jsonl");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let added: Vec<Queued> =
            (0..WAITING + 10).map(|n| keep.append("aa-bb", vec![messages(n, 1)])).collect();
        assert_eq!(added.first(), Some(&Queued::Passed));
        assert_eq!(added.last(), Some(&Queued::Lost));
        let lost = added.iter().filter(|added| **added == Queued::Lost).count();
        assert!((9..=10).contains(&lost), "{lost}");
        assert_eq!(keep.lost(), lost as u64);
        // A reader lets the thread end.
        let mut reader = OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
        keep.settle();
        assert!(reader.read(&mut [0; 64]).unwrap() > 0);
    }

    #[test]
    fn an_unwritten_conversation_is_written_again_in_full() {
        let home = tempfile::tempdir().unwrap();
        let keep = ConversationStore::at(home.path()).unwrap();
        let path = home.path().join("aa-cc.jsonl");
        fs::create_dir(&path).unwrap();
        assert_eq!(keep.append("aa-cc", vec![messages(0, 2)]), Queued::Passed);
        keep.settle();
        assert_eq!((keep.append("aa-cc", vec![messages(2, 2)]), keep.lost()), (Queued::Lost, 1));
        fs::remove_dir(&path).unwrap();
        keep.append("aa-cc", vec![messages(0, 5)]);
        assert_eq!(keep.read("aa-cc").unwrap().known.len(), 5);
        // A line whose predecessor is missing is ignored.
        keep.append("aa-cc", vec![messages(7, 1)]);
        let saved = keep.read("aa-cc").unwrap();
        assert_eq!((saved.known.len(), saved.next_id), (5, 8));
    }
}

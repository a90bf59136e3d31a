//! Records on disk: one file per conversation, one line per record.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fs, thread};

use ctx_core::{Error, ErrorKind, Result};
use ctx_disk::lru::{self, LruFiles, file_of, id_of, unwritable};

use super::cache::{RecordCache, RecordPosition, without_entries};
use super::line::{LastRecords, TraceLine, read_record};
use super::{Record, SessionInfo, SessionTrace, StoredRecords};

/// Capacity of the write queue. While it is full, the entries of new records are lost; their sizes
/// stay in memory.
const WAITING: usize = 256;

/// Maximum line length; longer lines are invalid.
const MAX_LINE: u64 = 64 << 20;

pub(super) enum WriteTask {
    Begin(Arc<SessionInfo>),
    Add(Box<Record>),
    /// The conversation, and the entry of the compaction.
    Undone(String, String),
    Remove(Vec<String>),
    /// Signals that all earlier work is done.
    Settle(SyncSender<()>),
}

/// State shared with the writer thread, beside the queue.
#[derive(Debug, Default)]
struct WriterStatus {
    /// Conversations whose removal did not fit into the queue. Their files are deleted once it is
    /// empty: a conversation whose file remains would reappear after a restart.
    gone: Mutex<Vec<String>>,
    /// The number of lines that were not written: the queue was full, or the write failed.
    lost: AtomicU64,
}

/// The folder, and its writer thread.
#[derive(Debug)]
pub(super) struct TraceDisk {
    folder: PathBuf,
    work: SyncSender<WriteTask>,
    status: Arc<WriterStatus>,
}

impl TraceDisk {
    pub(super) fn open(folder: PathBuf, most: u64, cache: Arc<Mutex<RecordCache>>) -> Result<Self> {
        lru::create_folder(&folder).map_err(unwritable("cannot store records", &folder))?;
        let (work, tasks) = sync_channel(WAITING);
        let status = Arc::<WriterStatus>::default();
        let (folder_, status_) = (folder.clone(), status.clone());
        let (files, last) = (LruFiles::default(), LastRecords::default());
        let mut writer = Writer { folder: folder_, most, cache, files, last, status: status_ };
        thread::Builder::new()
            .name("ctx-trace".to_owned())
            .spawn(move || writer.run(&tasks))
            .map_err(unwritable("cannot start a thread", &folder))?;
        Ok(Self { folder, work, status })
    }

    /// Returns the number of lines that were not written: records, conversation headers, undo
    /// marks.
    pub(super) fn lost(&self) -> u64 {
        self.status.lost.load(Ordering::Relaxed)
    }

    pub(super) fn remove(&self, gone: Vec<String>) {
        if let Err(TrySendError::Full(WriteTask::Remove(gone))) =
            self.work.try_send(WriteTask::Remove(gone))
        {
            self.status.gone().extend(gone);
        }
    }

    /// Waits until all queued writes are done.
    pub(super) fn settle(&self) {
        let (done, settled) = sync_channel(1);
        if self.work.send(WriteTask::Settle(done)).is_ok() {
            let _ = settled.recv();
        }
    }

    /// Reads a record.
    pub(super) fn read(&self, session: &str, position: RecordPosition) -> Result<Record> {
        let path = file_of(&self.folder, session);
        ctx_disk::open(&path).and_then(|file| read_record(&file, position)).map_err(|error| {
            let (kind, what) = match error.kind() {
                io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
                    (ErrorKind::Corrupt, "damaged record")
                }
                _ => (ErrorKind::Io, "cannot read a record"),
            };
            Error::new(kind, what)
                .with("path", path.display())
                .hint("records are for inspection only: the file can be deleted")
                .source(error)
        })
    }

    /// Queues a write. The write is lost if the queue is full.
    pub(super) fn enqueue(&self, work: WriteTask) {
        // A request must not wait for the disk.
        if self.work.try_send(work).is_err() {
            self.status.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl WriterStatus {
    fn gone(&self) -> MutexGuard<'_, Vec<String>> {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Writer {
    folder: PathBuf,
    most: u64,
    cache: Arc<Mutex<RecordCache>>,
    files: LruFiles,
    last: LastRecords,
    status: Arc<WriterStatus>,
}

impl Writer {
    fn run(&mut self, tasks: &Receiver<WriteTask>) {
        self.restore();
        loop {
            let work = tasks.try_recv().or_else(|_| {
                let gone = std::mem::take(&mut *self.status.gone());
                gone.iter().for_each(|id| self.remove(id));
                tasks.recv()
            });
            let Ok(work) = work else { return };
            match work {
                WriteTask::Begin(info) => {
                    let id = info.id.clone();
                    self.append(&id, &TraceLine::Session(SessionInfo::clone(&info)));
                }
                WriteTask::Add(record) => {
                    let (id, number) = (record.session.clone(), record.number);
                    let mut last = std::mem::take(&mut self.last);
                    let position = last.write(record, |line| self.append(&id, line));
                    self.last = last;
                    if let Some(position) = position {
                        self.cache().set_position(&id, number, position);
                    }
                    self.bound(&id);
                }
                WriteTask::Undone(id, entry) => {
                    // `restore` may have added the record after the cache was updated.
                    self.cache().undone(&id, &entry);
                    self.append(&id, &TraceLine::Undone(entry));
                }
                WriteTask::Remove(gone) => gone.iter().for_each(|id| self.remove(id)),
                WriteTask::Settle(done) => drop(done.send(())),
            }
        }
    }

    /// Appends a line. A line that cannot be written is counted as lost.
    fn append(&mut self, id: &str, line: &TraceLine) -> Option<RecordPosition> {
        let position = self.write(id, line);
        if position.is_none() {
            self.status.lost.fetch_add(1, Ordering::Relaxed);
        }
        position
    }

    fn write(&mut self, id: &str, line: &TraceLine) -> Option<RecordPosition> {
        let mut text = serde_json::to_vec(line).ok()?;
        let length = u32::try_from(text.len()).ok()?;
        text.push(b'\n');
        let mut file = lru::open_append(&file_of(&self.folder, id)).ok()?;
        let offset = file.seek(SeekFrom::End(0)).ok()?;
        file.write_all(&text).ok()?;
        self.files.record_use(id, text.len() as u64);
        Some(RecordPosition { offset, length })
    }

    /// Deletes the least recently used files until the rest is within the limit.
    fn bound(&mut self, in_use: &str) {
        for id in self.files.evict(self.most, usize::MAX, in_use) {
            let _ = fs::remove_file(file_of(&self.folder, &id));
            self.last.remove(&id);
            self.cache().remove(&id);
        }
        // If the file in use is too large by itself, it is deleted too; its sizes stay in memory.
        if self.files.bytes() > self.most {
            self.remove(in_use);
            self.cache().clear_positions(in_use);
        }
    }

    fn remove(&mut self, id: &str) {
        let _ = fs::remove_file(file_of(&self.folder, id));
        self.files.remove(id);
        self.last.remove(id);
    }

    fn cache(&self) -> MutexGuard<'_, RecordCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn restore(&mut self) {
        self.files = LruFiles::of(&self.folder, id_of);
        let Ok(files) = fs::read_dir(&self.folder) else { return };
        for path in files.flatten().map(|file| file.path()) {
            let Some(id) = id_of(&path) else { continue };
            let short = |record: Record| without_entries(&record);
            let Ok(file) = read_all(&path, &id, short) else { continue };
            self.cache().restore(file.info, file.rows);
        }
    }
}

/// Reads the records of a folder without their entries.
///
/// # Errors
///
/// [`ErrorKind::Io`] if the folder exists and cannot be listed.
pub(super) fn read_folder(folder: &Path) -> Result<StoredRecords> {
    let mut stored = StoredRecords::default();
    let files = match fs::read_dir(folder) {
        Ok(files) => files,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(stored),
        Err(error) => {
            return Err(Error::new(ErrorKind::Io, "cannot list the records of `ctx serve`")
                .with("path", folder.display())
                .hint("check the permissions of the folder, or set CTX_HOME")
                .source(error));
        }
    };
    for path in files.flatten().map(|file| file.path()) {
        let Some(id) = id_of(&path) else { continue };
        let whole = |record: Record| Record { entries: Vec::new(), ..record };
        let Ok(file) = read_all(&path, &id, whole) else {
            stored.damaged += 1;
            continue;
        };
        stored.damaged += file.damaged;
        let requests = file.rows.into_iter().map(|(record, _)| Arc::new(record)).collect();
        stored.sessions.push(SessionTrace { info: Arc::new(file.info), requests });
    }
    Ok(stored)
}

/// The content of a file.
struct TraceFile {
    info: SessionInfo,
    rows: Vec<(Record, RecordPosition)>,
    /// Lines that are not records of this conversation.
    damaged: u64,
}

/// Reads a file; `keep` returns what is kept of a record. Invalid lines are skipped and counted.
fn read_all(path: &Path, id: &str, keep: fn(Record) -> Record) -> io::Result<TraceFile> {
    let mut file = BufReader::new(ctx_disk::open(path)?);
    let mut info = SessionInfo { id: id.to_owned(), ..SessionInfo::default() };
    let (mut rows, mut damaged) = (Vec::<(Record, RecordPosition)>::new(), 0);
    let (mut offset, mut line) = (0, Vec::new());
    loop {
        line.clear();
        let read = (&mut file).take(MAX_LINE).read_until(b'\n', &mut line)?;
        if read == 0 {
            break;
        }
        match serde_json::from_slice(&line) {
            Ok(TraceLine::Session(known)) if known.id == id => info = known,
            Ok(TraceLine::Record(record) | TraceLine::Next { record, .. })
                if record.session == id =>
            {
                let length = u32::try_from(line.len()).unwrap_or(u32::MAX);
                rows.push((keep(*record), RecordPosition { offset, length }));
            }
            Ok(TraceLine::Undone(entry)) => {
                rows.iter_mut().for_each(|(record, _)| record.undo(&entry));
            }
            _ => damaged += 1,
        }
        offset += read as u64;
    }
    Ok(TraceFile { info, rows, damaged })
}

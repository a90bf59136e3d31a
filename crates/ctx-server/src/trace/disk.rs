//! The records on disk: a file for each conversation, a line for each record.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use ctx_core::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use super::shelf::{Place, Shelf, without_entries};
use super::{Record, SessionInfo};
use crate::private::{self, Files};

/// How many records may wait to be written. Of what comes while they are full, sizes are kept and
/// entries are not.
const WAITING: usize = 256;

/// A line of a file is at most so long; a longer one is none of ours.
const MAX_LINE: u64 = 64 << 20;

/// A line of a file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Line {
    Session(SessionInfo),
    Record(Box<Record>),
    /// A compaction before it was taken back: the one of that entry.
    Undone(String),
}

enum Work {
    Begin(Arc<SessionInfo>),
    Add(Box<Record>),
    /// In which conversation, and the compaction of which entry.
    Undone(String, String),
    Remove(Vec<String>),
    /// Says that everything before it was done.
    Settle(SyncSender<()>),
}

/// What requests and the thread that writes tell each other beside the queue.
#[derive(Debug, Default)]
struct Beside {
    /// Conversations whose files are to go when the queue is done, in which there was no room for
    /// them. A file that stays would be back after a restart.
    gone: Mutex<Vec<String>>,
    /// How much was not written: there was no room in the queue, or on the disk.
    lost: AtomicU64,
}

/// The folder, and the thread that writes there.
#[derive(Debug)]
pub(super) struct Disk {
    folder: PathBuf,
    work: SyncSender<Work>,
    beside: Arc<Beside>,
}

impl Disk {
    pub(super) fn open(folder: PathBuf, most: u64, shelf: Arc<Mutex<Shelf>>) -> Result<Self> {
        let failed = |what: &'static str, folder: &Path| {
            let at = folder.display().to_string();
            move |error: io::Error| {
                Error::new(ErrorKind::Io, what)
                    .with("path", at)
                    .hint("set CTX_HOME to a folder that can be written to")
                    .source(error)
            }
        };
        private::folder(&folder).map_err(failed("records cannot be kept", &folder))?;
        let (work, todo) = sync_channel(WAITING);
        let beside = Arc::<Beside>::default();
        let (folder_, beside_) = (folder.clone(), beside.clone());
        let mut writer =
            Writer { folder: folder_, most, shelf, files: Files::default(), beside: beside_ };
        thread::Builder::new()
            .name("ctx-trace".to_owned())
            .spawn(move || writer.run(&todo))
            .map_err(failed("no thread can be started", &folder))?;
        Ok(Self { folder, work, beside })
    }

    /// How many records and beginnings of conversations were not written.
    pub(super) fn lost(&self) -> u64 {
        self.beside.lost.load(Ordering::Relaxed)
    }

    pub(super) fn begin(&self, info: Arc<SessionInfo>) {
        self.pass(Work::Begin(info));
    }

    pub(super) fn add(&self, record: Record) {
        self.pass(Work::Add(Box::new(record)));
    }

    pub(super) fn undone(&self, session: &str, entry: &str) {
        self.pass(Work::Undone(session.to_owned(), entry.to_owned()));
    }

    pub(super) fn remove(&self, gone: Vec<String>) {
        if let Err(TrySendError::Full(Work::Remove(gone))) = self.work.try_send(Work::Remove(gone))
        {
            self.beside.gone().extend(gone);
        }
    }

    /// Waits until all that was passed on so far is written.
    pub(super) fn settle(&self) {
        let (done, settled) = sync_channel(1);
        if self.work.send(Work::Settle(done)).is_ok() {
            let _ = settled.recv();
        }
    }

    /// Reads a record.
    pub(super) fn read(&self, session: &str, place: Place) -> Result<Record> {
        let path = file_of(&self.folder, session);
        let failed = |kind, what: &'static str| {
            let path = path.display().to_string();
            move || {
                Error::new(kind, what)
                    .with("path", path)
                    .hint("records are only for looking at: the file can be removed")
            }
        };
        let read = || -> io::Result<Vec<u8>> {
            let mut file = ctx_disk::open(&path)?;
            file.seek(SeekFrom::Start(place.offset))?;
            let mut line = Vec::new();
            file.take(u64::from(place.length)).read_to_end(&mut line)?;
            Ok(line)
        };
        let line = read()
            .map_err(|error| failed(ErrorKind::Io, "a record cannot be read")().source(error))?;
        match serde_json::from_slice(&line) {
            Ok(Line::Record(record)) => Ok(*record),
            Ok(Line::Session(_) | Line::Undone(_)) => {
                Err(failed(ErrorKind::Corrupt, "this line is no record")())
            }
            Err(error) => Err(failed(ErrorKind::Corrupt, "a record is damaged")().source(error)),
        }
    }

    fn pass(&self, work: Work) {
        // A request waits for no disk.
        if self.work.try_send(work).is_err() {
            self.beside.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Beside {
    fn gone(&self) -> MutexGuard<'_, Vec<String>> {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Writer {
    folder: PathBuf,
    most: u64,
    shelf: Arc<Mutex<Shelf>>,
    files: Files,
    beside: Arc<Beside>,
}

impl Writer {
    fn run(&mut self, todo: &Receiver<Work>) {
        self.restore();
        loop {
            let work = todo.try_recv().or_else(|_| {
                let gone = std::mem::take(&mut *self.beside.gone());
                gone.iter().for_each(|id| self.remove(id));
                todo.recv()
            });
            let Ok(work) = work else { return };
            match work {
                Work::Begin(info) => {
                    let id = info.id.clone();
                    self.append(&id, &Line::Session(SessionInfo::clone(&info)));
                }
                Work::Add(record) => {
                    let (id, number) = (record.session.clone(), record.number);
                    if let Some(place) = self.append(&id, &Line::Record(record)) {
                        self.shelf().placed(&id, number, place);
                    }
                    self.bound(&id);
                }
                Work::Undone(id, entry) => {
                    // What was read from disk meanwhile did not know.
                    self.shelf().undone(&id, &entry);
                    self.append(&id, &Line::Undone(entry));
                }
                Work::Remove(gone) => gone.iter().for_each(|id| self.remove(id)),
                Work::Settle(done) => drop(done.send(())),
            }
        }
    }

    /// Appends a line. That it cannot be written costs the entries of a record, and nothing else.
    fn append(&mut self, id: &str, line: &Line) -> Option<Place> {
        let place = self.write(id, line);
        if place.is_none() {
            self.beside.lost.fetch_add(1, Ordering::Relaxed);
        }
        place
    }

    fn write(&mut self, id: &str, line: &Line) -> Option<Place> {
        let mut text = serde_json::to_vec(line).ok()?;
        let length = u32::try_from(text.len()).ok()?;
        text.push(b'\n');
        let mut file = private::append(&file_of(&self.folder, id)).ok()?;
        let offset = file.seek(SeekFrom::End(0)).ok()?;
        file.write_all(&text).ok()?;
        self.files.grew(id, text.len() as u64);
        Some(Place { offset, length })
    }

    /// Removes files until there are few enough bytes.
    fn bound(&mut self, in_use: &str) {
        for id in self.files.over(self.most, usize::MAX, in_use) {
            let _ = fs::remove_file(file_of(&self.folder, &id));
            self.shelf().remove(&id);
        }
        // The one in use goes as well where nothing else is left: its sizes stay in memory.
        if self.files.bytes() > self.most {
            self.remove(in_use);
            self.shelf().unplaced(in_use);
        }
    }

    fn remove(&mut self, id: &str) {
        let _ = fs::remove_file(file_of(&self.folder, id));
        self.files.gone(id);
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn restore(&mut self) {
        self.files = Files::of(&self.folder, id_of);
        let Ok(files) = fs::read_dir(&self.folder) else { return };
        for path in files.flatten().map(|file| file.path()) {
            let Some(id) = id_of(&path) else { continue };
            let Ok((info, rows)) = read_all(&path, &id) else { continue };
            self.shelf().restore(info, rows);
        }
    }
}

fn id_of(path: &Path) -> Option<String> {
    let is_ours = path.extension().is_some_and(|ending| ending == "jsonl");
    Some(path.file_stem().filter(|_| is_ours)?.to_str()?.to_owned())
}

/// Records without entries, and where they stand.
type Rows = Vec<(Record, Place)>;

/// Reads a file without the entries of its records. Lines that cannot be read are passed over.
fn read_all(path: &Path, id: &str) -> io::Result<(SessionInfo, Rows)> {
    let mut file = BufReader::new(ctx_disk::open(path)?);
    let mut info = SessionInfo { id: id.to_owned(), ..SessionInfo::default() };
    let (mut rows, mut offset, mut line): (Rows, _, _) = (Vec::new(), 0, Vec::new());
    loop {
        line.clear();
        let read = (&mut file).take(MAX_LINE).read_until(b'\n', &mut line)?;
        if read == 0 {
            break;
        }
        match serde_json::from_slice(&line) {
            Ok(Line::Session(known)) if known.id == id => info = known,
            Ok(Line::Record(record)) if record.session == id => {
                let length = u32::try_from(line.len()).unwrap_or(u32::MAX);
                rows.push((without_entries(&record), Place { offset, length }));
            }
            Ok(Line::Undone(entry)) => {
                rows.iter_mut().for_each(|(record, _)| record.undo(&entry));
            }
            _ => {}
        }
        offset += read as u64;
    }
    Ok((info, rows))
}

fn file_of(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.jsonl"))
}

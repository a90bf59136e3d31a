//! The records on disk: a file for each conversation, a line for each record.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use ctx_core::{Error, ErrorKind, Result};
use ctx_memory::Redactor;
use serde::{Deserialize, Serialize};

use super::shelf::{Place, Shelf, without_entries};
use super::{Record, SessionInfo};
use crate::private;

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
}

enum Work {
    Begin(Arc<SessionInfo>),
    Add(Box<Record>),
    Remove(Vec<String>),
    /// Says that everything before it was done.
    Settle(SyncSender<()>),
}

/// The folder, and the thread that writes there.
#[derive(Debug)]
pub(super) struct Disk {
    folder: PathBuf,
    work: SyncSender<Work>,
}

impl Disk {
    pub(super) fn open(folder: PathBuf, most: u64, shelf: Arc<Mutex<Shelf>>) -> Result<Self> {
        let failed = |what: &'static str, folder: &Path| {
            let at = folder.display().to_string();
            move |error: io::Error| Error::new(ErrorKind::Io, what).with("path", at).source(error)
        };
        private::folder(&folder).map_err(failed("records cannot be kept", &folder))?;
        let (work, todo) = sync_channel(WAITING);
        let mut writer = Writer {
            folder: folder.clone(),
            most,
            shelf,
            sizes: HashMap::new(),
            redacted: HashMap::new(),
        };
        thread::Builder::new()
            .name("ctx-trace".to_owned())
            .spawn(move || writer.run(&todo))
            .map_err(failed("no thread can be started", &folder))?;
        Ok(Self { folder, work })
    }

    pub(super) fn begin(&self, info: Arc<SessionInfo>) {
        self.pass(Work::Begin(info));
    }

    pub(super) fn add(&self, record: Record) {
        self.pass(Work::Add(Box::new(record)));
    }

    pub(super) fn remove(&self, gone: Vec<String>) {
        self.pass(Work::Remove(gone));
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
            let mut file = File::open(&path)?;
            file.seek(SeekFrom::Start(place.offset))?;
            let mut line = Vec::new();
            file.take(u64::from(place.length)).read_to_end(&mut line)?;
            Ok(line)
        };
        let line = read()
            .map_err(|error| failed(ErrorKind::Io, "a record cannot be read")().source(error))?;
        match serde_json::from_slice(&line) {
            Ok(Line::Record(record)) => Ok(*record),
            Ok(Line::Session(_)) => Err(failed(ErrorKind::Corrupt, "this line is no record")()),
            Err(error) => Err(failed(ErrorKind::Corrupt, "a record is damaged")().source(error)),
        }
    }

    fn pass(&self, work: Work) {
        match self.work.try_send(work) {
            Ok(()) | Err(TrySendError::Disconnected(_)) => {}
            // A request waits for no disk.
            Err(TrySendError::Full(_)) => {}
        }
    }
}

/// So many beginnings of messages are known to be redacted, before they are forgotten: a message is
/// in every record of its conversation.
const KNOWN: usize = 50_000;

struct Writer {
    folder: PathBuf,
    most: u64,
    shelf: Arc<Mutex<Shelf>>,
    /// Bytes of each file.
    sizes: HashMap<String, u64>,
    /// What became of the beginnings of messages; `None` where nothing had to be taken out.
    redacted: HashMap<String, Option<String>>,
}

impl Writer {
    fn run(&mut self, todo: &Receiver<Work>) {
        self.restore();
        while let Ok(work) = todo.recv() {
            match work {
                Work::Begin(info) => {
                    let id = info.id.clone();
                    self.append(&id, &Line::Session(SessionInfo::clone(&info)));
                }
                Work::Add(mut record) => {
                    self.redact(&mut record);
                    let (id, number) = (record.session.clone(), record.number);
                    if let Some(place) = self.append(&id, &Line::Record(record)) {
                        let mut shelf = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
                        shelf.placed(&id, number, place);
                    }
                    self.bound(&id);
                }
                Work::Remove(gone) => gone.iter().for_each(|id| self.remove(id)),
                Work::Settle(done) => drop(done.send(())),
            }
        }
    }

    /// What begins a message may be a secret.
    fn redact(&mut self, record: &mut Record) {
        if self.redacted.len() > KNOWN {
            self.redacted.clear();
        }
        for entry in &mut record.entries {
            let known = self.redacted.get(&entry.begins).cloned().unwrap_or_else(|| {
                let redacted = match Redactor::builtin().redact(&entry.begins).text {
                    Cow::Owned(text) => Some(text),
                    Cow::Borrowed(_) => None,
                };
                self.redacted.insert(entry.begins.clone(), redacted.clone());
                redacted
            });
            if let Some(text) = known {
                entry.begins = text;
            }
        }
    }

    /// Appends a line. That it cannot be written costs the entries of a record, and nothing else.
    fn append(&mut self, id: &str, line: &Line) -> Option<Place> {
        let mut text = serde_json::to_vec(line).ok()?;
        let length = u32::try_from(text.len()).ok()?;
        text.push(b'\n');
        let mut file = private::append(&file_of(&self.folder, id)).ok()?;
        let offset = file.seek(SeekFrom::End(0)).ok()?;
        file.write_all(&text).ok()?;
        self.sizes.insert(id.to_owned(), offset + text.len() as u64);
        Some(Place { offset, length })
    }

    /// Removes files until there are few enough bytes. Which was used last, its time of change says.
    fn bound(&mut self, in_use: &str) {
        while self.sizes.values().sum::<u64>() > self.most {
            let changed = |id: &String| {
                fs::metadata(file_of(&self.folder, id)).and_then(|meta| meta.modified()).ok()
            };
            let others = self.sizes.keys().filter(|id| *id != in_use);
            // The one in use goes as well where nothing else is left: its sizes stay in memory.
            let oldest = others.min_by_key(|id| changed(id)).cloned();
            let is_last = oldest.is_none();
            let id = oldest.unwrap_or_else(|| in_use.to_owned());
            self.remove(&id);
            if !is_last {
                self.shelf.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
            }
        }
    }

    fn remove(&mut self, id: &str) {
        let _ = fs::remove_file(file_of(&self.folder, id));
        self.sizes.remove(id);
    }

    fn restore(&mut self) {
        let Ok(files) = fs::read_dir(&self.folder) else { return };
        for file in files.flatten() {
            let path = file.path();
            let is_ours = path.extension().is_some_and(|ending| ending == "jsonl");
            let Some(id) = path.file_stem().and_then(|name| name.to_str()) else { continue };
            if !is_ours {
                continue;
            }
            let Ok((info, rows, bytes)) = read_all(&path, id) else { continue };
            self.sizes.insert(id.to_owned(), bytes);
            let mut shelf = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
            shelf.restore(info, rows);
        }
    }
}

/// Records without entries, and where they stand.
type Rows = Vec<(Record, Place)>;

/// Reads a file without the entries of its records. Lines that cannot be read are passed over.
fn read_all(path: &Path, id: &str) -> io::Result<(SessionInfo, Rows, u64)> {
    let mut file = BufReader::new(File::open(path)?);
    let mut info = SessionInfo { id: id.to_owned(), ..SessionInfo::default() };
    let (mut rows, mut offset, mut line) = (Vec::new(), 0, Vec::new());
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
            _ => {}
        }
        offset += read as u64;
    }
    Ok((info, rows, offset))
}

fn file_of(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.jsonl"))
}

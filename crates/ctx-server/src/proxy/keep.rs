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
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

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

/// The folder, and the thread that writes there.
#[derive(Debug)]
pub(super) struct Keep {
    folder: PathBuf,
    work: SyncSender<Work>,
}

impl Keep {
    /// Keeps conversations in a folder.
    pub(super) fn at(folder: &Path) -> Result<Self> {
        let failed = |what: &'static str| {
            let path = folder.display().to_string();
            move |error: std::io::Error| {
                Error::new(ErrorKind::Io, what)
                    .with("path", path)
                    .hint("check that $CTX_HOME can be written to")
                    .source(error)
            }
        };
        private::folder(folder).map_err(failed("conversations cannot be kept"))?;
        let (work, todo) = sync_channel(WAITING);
        let mut writer = Writer { folder: folder.to_owned(), files: Files::default() };
        thread::Builder::new()
            .name("ctx-proxy-keep".to_owned())
            .spawn(move || writer.run(&todo))
            .map_err(failed("no thread can be started"))?;
        Ok(Self { folder: folder.to_owned(), work })
    }

    /// The conversations that have files, by their ids.
    pub(super) fn ids(&self) -> Vec<String> {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        files.filter_map(|file| id_of(&file.path())).collect()
    }

    /// Adds lines to a conversation's file.
    pub(super) fn append(&self, id: &str, lines: Vec<Line>) {
        // The thread ends with this value only.
        let _ = self.work.send(Work::Append(id.to_owned(), lines));
    }

    /// What a conversation's file says. It reads a file.
    pub(super) fn read(&self, id: &str) -> Option<Saved> {
        self.settle();
        let file = fs::File::open(file_of(&self.folder, id)).ok()?;
        let (mut file, mut line) = (BufReader::new(file), Vec::new());
        let (mut saved, mut forms) = (Saved::default(), Vec::new());
        loop {
            line.clear();
            if (&mut file).take(MAX_LINE).read_until(b'\n', &mut line).ok()? == 0 {
                break;
            }
            // A line that was cut off says nothing; the next request makes anew what it lacks.
            match serde_json::from_slice(&line) {
                Ok(Line::Told { from, items }) => {
                    saved.known.truncate(from);
                    for Item(id, hash, is_instruction) in items {
                        let number = u32::from_str_radix(&id, 16).unwrap_or_default();
                        saved.made = saved.made.max(number.saturating_add(1));
                        saved.known.push(Known { id, mark: None, hash, is_instruction });
                    }
                }
                Ok(Line::Form(form)) => forms.push(*form),
                Ok(Line::Compaction(kept)) => {
                    saved.in_force = kept.map(|kept| kept.into_force());
                }
                Ok(Line::Reported(reported, estimated)) => {
                    saved.reported = Some((reported, estimated));
                }
                Err(_) => {}
            }
        }
        saved.forms = forms;
        Some(saved)
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
}

impl Writer {
    fn run(&mut self, todo: &Receiver<Work>) {
        self.files = Files::of(&self.folder, id_of);
        while let Ok(work) = todo.recv() {
            match work {
                Work::Append(id, lines) => {
                    let mut text = Vec::new();
                    for line in &lines {
                        if serde_json::to_writer(&mut text, line).is_ok() {
                            text.push(b'\n');
                        }
                    }
                    let path = file_of(&self.folder, &id);
                    // What cannot be written is cut anew after a restart.
                    let written = private::append(&path).and_then(|mut file| file.write_all(&text));
                    if written.is_ok() {
                        self.files.grew(&id, text.len() as u64);
                    }
                    for id in self.files.over(MOST_BYTES, MOST_FILES, &id) {
                        let _ = fs::remove_file(file_of(&self.folder, &id));
                    }
                }
                Work::Settle(done) => drop(done.send(())),
            }
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

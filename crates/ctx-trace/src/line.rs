//! The lines of a file of records. A request repeats most entries of the one before it, so a line has
//! only those that follow the equal ones.

use std::collections::HashMap;
use std::fs::File;
use std::hash::BuildHasher;
use std::io;

use foldhash::fast::RandomState;
use serde::{Deserialize, Serialize};

use super::cache::RecordPosition;
use super::{Record, SessionInfo};

/// The number of lines from which the entries of a record are collected: a reader reads them all.
const MOST_LINES: u32 = 32;

/// The number of conversations whose last record is known.
const CONVERSATIONS: usize = 4_096;

/// A line.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum TraceLine {
    Session(SessionInfo),
    Record(Box<Record>),
    /// A record that begins with the first `same` entries of the record at `base`, which precedes it in
    /// the file.
    Next {
        base: RecordPosition,
        same: usize,
        record: Box<Record>,
    },
    /// The earlier compaction with that entry was undone.
    Undone(String),
}

/// The last written record of each conversation.
#[derive(Default)]
pub(super) struct LastRecords {
    records: HashMap<String, LastRecord>,
    hasher: RandomState,
}

/// The hashes of a record's entries; and the number of lines that hold them.
struct LastRecord {
    position: RecordPosition,
    entries: Vec<u64>,
    lines: u32,
}

impl LastRecords {
    /// Writes a record with `append`, without the entries that the last one has too.
    pub(super) fn write(
        &mut self,
        mut record: Box<Record>,
        append: impl FnOnce(&TraceLine) -> Option<RecordPosition>,
    ) -> Option<RecordPosition> {
        let id = record.session.clone();
        let entries: Vec<u64> = record.entries.iter().map(|e| self.hasher.hash_one(e)).collect();
        // If the write fails, the file may end with a part of a line: what follows is whole.
        let last = self.records.remove(&id).filter(|last| last.lines < MOST_LINES);
        let same = last.as_ref().map_or(0, |last| equal(&last.entries, &entries));
        let (line, lines) = match last.filter(|_| same > 0) {
            Some(last) => {
                record.entries.drain(..same);
                (TraceLine::Next { base: last.position, same, record }, last.lines + 1)
            }
            None => (TraceLine::Record(record), 1),
        };
        let position = append(&line)?;
        if self.records.len() >= CONVERSATIONS {
            self.records.clear();
        }
        self.records.insert(id, LastRecord { position, entries, lines });
        Some(position)
    }

    /// Forgets a conversation: its file is removed.
    pub(super) fn remove(&mut self, id: &str) {
        self.records.remove(id);
    }
}

/// Returns the length of the equal beginning.
fn equal(one: &[u64], other: &[u64]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

/// Reads the record in a line, with all its entries.
pub(super) fn read_record(file: &File, position: RecordPosition) -> io::Result<Record> {
    let (mut record, mut base) = read_line(file, position)?;
    let mut at = position;
    for _ in 1..MOST_LINES {
        let Some((next, same)) = base else { return Ok(record) };
        if next.offset >= at.offset {
            break;
        }
        let (earlier, its_base) = read_line(file, next)?;
        let not_its_own = its_base.map_or(0, |(_, same)| same);
        let entries = earlier.entries.into_iter().take(same.saturating_sub(not_its_own));
        record.entries.splice(..0, entries);
        base = its_base.map(|(base, not_its_own)| (base, not_its_own.min(same)));
        at = next;
    }
    match base {
        None => Ok(record),
        Some(_) => Err(invalid("it refers to a line that does not precede it")),
    }
}

/// The record of a line, and where its first entries are: the position of a line, and their number.
type Partial = (Record, Option<(RecordPosition, usize)>);

fn read_line(file: &File, position: RecordPosition) -> io::Result<Partial> {
    let line = ctx_disk::read_at(file, position.offset, position.length.into())?;
    match serde_json::from_slice(&line)? {
        TraceLine::Record(record) => Ok((*record, None)),
        TraceLine::Next { base, same, record } => Ok((*record, Some((base, same)))),
        TraceLine::Session(_) | TraceLine::Undone(_) => Err(invalid("it is not a record")),
    }
}

fn invalid(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

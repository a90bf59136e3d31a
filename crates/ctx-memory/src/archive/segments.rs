//! The segments of one agent.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::ops::Range;
use std::path::PathBuf;

use ctx_core::{Result, Timestamp};
use foldhash::fast::RandomState;

use super::file::{LinesFile, ReadPosition};
use super::forgotten::Forgotten;
use super::row::{ArchiveRow, Names, RowEntry, id_in};
use super::source::{AddOutcome, Source};
use ctx_search::block::is_recalled;
use ctx_search::{IdTable, Segment, SegmentId};

/// The file is rewritten when it holds at least this many dead lines and they are an eighth of all.
pub(super) const SLACK: usize = 256;

/// The limits of the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchiveLimits {
    /// The maximum number of segments; the oldest are evicted. Default: 20,000.
    pub max_segments: usize,
    /// Segments older than this many days are evicted; 0 keeps them. Default: 90.
    pub eviction_days: u32,
}

impl Default for ArchiveLimits {
    fn default() -> Self {
        Self { max_segments: 20_000, eviction_days: 90 }
    }
}

/// What this process and others changed in the archive since the last call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// New segments, in the order of the file.
    pub added: Vec<SegmentId>,
    /// Segments that were evicted or forgotten.
    pub removed: Vec<SegmentId>,
}

/// The damage found in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Damage {
    /// The number of lines that are not a segment.
    pub unreadable: usize,
    /// The number of lines that repeat an earlier segment.
    pub duplicates: usize,
    /// The files that torn last lines were moved to.
    pub torn: Vec<PathBuf>,
}

/// The segments of one agent, stored in `segments.jsonl`. Opening creates no file; the first commit
/// does.
#[derive(Debug)]
pub(crate) struct Segments {
    pub(super) file: LinesFile,
    pub(super) limits: ArchiveLimits,
    pub(super) mark: ReadPosition,
    pub(super) rows: Vec<RowEntry>,
    /// The number of rows that are kept for the next start.
    pub(super) kept: usize,
    /// The rows that are live, by id.
    pub(super) places: IdTable,
    /// Segments by age, oldest first: time of archiving, time of the message, and index of the row.
    /// May still contain evicted segments.
    pub(super) ages: BinaryHeap<Reverse<(Timestamp, Timestamp, u32)>>,
    pub(super) names: Names,
    /// The number of dead lines in the file: evicted segments and duplicates.
    pub(super) dead: usize,
    pub(super) unreadable: Vec<Range<u64>>,
    /// Segments whose line looked valid but could not be read.
    pub(super) spoiled: HashSet<SegmentId, RandomState>,
    pub(super) damage: Damage,
    pub(super) forgotten: Forgotten,
    pub(super) pending: Vec<(SegmentId, Vec<u8>)>,
    pub(super) waiting: HashSet<SegmentId, RandomState>,
    pub(super) changes: Changes,
}

impl Segments {
    /// Opens the archive at `path`, `.../memory/context/segments.jsonl`, and reads a row per
    /// segment, not the texts: those that are kept, and those of newer lines.
    ///
    /// # Errors
    ///
    /// If the file exists and cannot be read. Damage is not an error; `damage`
    /// reports it.
    pub(crate) fn open(
        path: impl Into<PathBuf>,
        limits: ArchiveLimits,
        now: Timestamp,
    ) -> Result<Self> {
        let path = path.into();
        let mut segments = Self {
            forgotten: Forgotten::beside(&path),
            file: LinesFile::new(path, "the archive"),
            limits,
            mark: ReadPosition::default(),
            rows: Vec::new(),
            kept: 0,
            places: IdTable::default(),
            ages: BinaryHeap::new(),
            names: Names::default(),
            dead: 0,
            unreadable: Vec::new(),
            spoiled: HashSet::default(),
            damage: Damage::default(),
            pending: Vec::new(),
            waiting: HashSet::default(),
            changes: Changes::default(),
        };
        segments.forgotten.refresh()?;
        segments.take_kept();
        segments.catch_up()?;
        segments.evict(now);
        segments.changes = Changes::default();
        Ok(segments)
    }

    /// Returns the row of a segment, unless it was evicted.
    pub(super) fn row(&self, id: SegmentId) -> Option<&RowEntry> {
        self.rows.get(self.places.get(&id, id_in(&self.rows))? as usize)
    }

    /// Whether the archive has a segment that was not evicted.
    pub(super) fn has(&self, id: SegmentId) -> bool {
        self.row(id).is_some()
    }

    /// The segments without their texts, in the order of the file.
    pub(crate) fn rows(&self) -> impl Iterator<Item = ArchiveRow<'_>> {
        self.rows.iter().filter(|row| row.live).filter_map(|row| self.names.show(row))
    }
}

impl Source for Segments {
    fn insert(&mut self, segment: &Segment) -> Result<AddOutcome> {
        let id = segment.id;
        if segment.content.trim().is_empty() || is_recalled(&segment.content) {
            return Ok(AddOutcome::Empty);
        }
        if self.has(id) || self.waiting.contains(&id) {
            return Ok(AddOutcome::Duplicate);
        }
        if self.forgotten.contains(id) {
            return Ok(AddOutcome::Forgotten);
        }
        let mut line = serde_json::to_vec(segment)
            .map_err(|e| self.file.failed("cannot write a segment to", e.into()))?;
        line.push(b'\n');
        self.waiting.insert(id);
        self.pending.push((id, line));
        Ok(AddOutcome::New)
    }

    fn is_forgotten(&self, id: SegmentId) -> bool {
        self.forgotten.contains(id)
    }

    fn forgotten(&self) -> Vec<SegmentId> {
        self.forgotten.ids().collect()
    }

    fn commit(&mut self, now: Timestamp) -> Result<Changes> {
        if self.pending.is_empty() {
            self.catch_up()?;
            self.evict(now);
            return Ok(std::mem::take(&mut self.changes));
        }
        let lock = self.begin()?;
        // Another process may have written it first.
        let mut pending = std::mem::take(&mut self.pending);
        pending.retain(|(id, _)| !self.has(*id));
        self.pending = pending;
        // Another process may have forgotten it.
        self.forgotten.refresh()?;
        let Self { forgotten, pending, changes, .. } = self;
        changes
            .removed
            .extend(pending.extract_if(.., |(id, _)| forgotten.contains(*id)).map(|(id, _)| id));
        let lines: Vec<u8> = self.pending.iter().flat_map(|(_, line)| line).copied().collect();
        if !lines.is_empty() {
            let (start, file) = self.file.append(&lock, self.mark.read_to, b"", &lines)?;
            let mut at = start;
            for (_, line) in std::mem::take(&mut self.pending) {
                self.take_line(line.strip_suffix(b"\n").unwrap_or(&line), at);
                at += line.len() as u64;
            }
            self.mark = self.file.mark(&file, at, self.file.generation())?;
        }
        self.pending.clear();
        self.waiting.clear();
        self.evict(now);
        if self.dead + self.unreadable.len() >= SLACK.max(self.places.len() / 8) {
            // The segments are stored. If the rewrite fails, it is done another time.
            let _ = self.rewrite(&lock, true);
        }
        Ok(std::mem::take(&mut self.changes))
    }

    fn refresh(&mut self) -> Result<Changes> {
        self.catch_up()?;
        Ok(std::mem::take(&mut self.changes))
    }

    fn get(&mut self, ids: &[SegmentId]) -> Result<Vec<Option<Segment>>> {
        let mut found = self.read_all(ids)?;
        let missed =
            |(id, segment): (&SegmentId, &Option<Segment>)| segment.is_none() && self.has(*id);
        if ids.iter().zip(&found).any(missed) {
            self.rescan()?;
            found = self.read_all(ids)?;
            // Their lines look valid but are not segments. They are marked, because otherwise each
            // request for one would scan the whole file. A later line may hold the same text.
            let left =
                ids.iter().zip(&found).filter(|(id, segment)| segment.is_none() && self.has(**id));
            let left: Vec<SegmentId> = left.map(|(id, _)| *id).collect();
            let spoiled = self.spoiled.len();
            self.spoiled.extend(left);
            if self.spoiled.len() > spoiled {
                self.rescan()?;
                found = self.read_all(ids)?;
            }
        }
        Ok(found)
    }

    fn forget(&mut self, ids: &HashSet<SegmentId>) -> Result<usize> {
        self.pending.retain(|(id, _)| !ids.contains(id));
        self.waiting.retain(|id| !ids.contains(id));
        if ids.is_empty() && self.file.open()?.is_none() {
            return Ok(0);
        }
        let lock = self.begin()?;
        // The ids are written first: if the process is killed, nothing that was erased can be added
        // again.
        self.forgotten.add(&lock, ids)?;
        let there: Vec<_> = ids.iter().filter(|id| self.has(**id)).copied().collect();
        if there.is_empty() && self.dead == 0 && self.unreadable.is_empty() {
            // Every line that is left belongs to a segment that stays.
            self.file.remove_aside(&lock)?;
            return Ok(0);
        }
        for id in &there {
            self.remove(*id);
        }
        if let Err(e) = self.rewrite(&lock, false) {
            // Memory must match the disk.
            let _ = self.rescan();
            return Err(e);
        }
        self.file.remove_aside(&lock)?;
        Ok(there.len())
    }

    fn each_row(&self, each: &mut dyn FnMut(ArchiveRow<'_>)) {
        self.rows().for_each(each);
    }

    fn count(&self) -> usize {
        self.places.len()
    }

    fn unreadable(&self) -> usize {
        self.damage.unreadable
    }

    fn place(&self, id: SegmentId) -> Option<(u64, u32)> {
        let row = self.row(id)?;
        Some((row.offset, row.length))
    }
}

#[cfg(test)]
mod tests;

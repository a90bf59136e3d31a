//! The segments of one agent.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use ctx_core::{Result, Timestamp};
use foldhash::fast::RandomState;

use super::file::{Mark, SegmentFile};
use super::forgotten::Forgotten;
use super::lines::Lines;
use super::row::{Names, Row, RowRef};
use crate::{Segment, SegmentId};

/// The file is written anew when it holds so many lines that nobody wants, and an eighth of all.
pub(super) const SLACK: usize = 256;

/// What the archive keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// This many segments at most; the oldest go. Default: 20,000.
    pub max_segments: usize,
    /// Segments older than this many days go; 0 keeps them. Default: 90.
    pub eviction_days: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_segments: 20_000, eviction_days: 90 }
    }
}

/// What became of the archive since it was last asked: by this process and by others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Segments that are new, in the order of the file.
    pub added: Vec<SegmentId>,
    /// Segments that are no longer there: evicted or forgotten.
    pub removed: Vec<SegmentId>,
}

/// What was wrong with the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Lines that are no segment.
    pub unreadable: usize,
    /// Lines whose segment stands before them.
    pub duplicates: usize,
    /// Where torn last lines were moved to.
    pub torn: Vec<PathBuf>,
}

/// The segments of one agent, as `segments.jsonl` holds them. Opening one creates nothing; the first
/// commit does.
#[derive(Debug)]
pub struct Segments {
    pub(super) file: SegmentFile,
    pub(super) limits: Limits,
    pub(super) mark: Mark,
    pub(super) rows: Vec<Row>,
    pub(super) places: HashMap<SegmentId, u32, RandomState>,
    /// The live ones by age, oldest first, and some that no longer are: since when they are here, when
    /// they were said, and their place.
    pub(super) ages: BinaryHeap<Reverse<(Timestamp, Timestamp, u32)>>,
    pub(super) names: Names,
    /// Lines of the file that nobody wants: evicted ones and duplicates.
    pub(super) dead: usize,
    pub(super) unreadable: Vec<Range<u64>>,
    /// Those whose line looked like a segment and is none.
    pub(super) spoiled: HashSet<SegmentId, RandomState>,
    pub(super) damage: Damage,
    pub(super) forgotten: Forgotten,
    pub(super) pending: Vec<(SegmentId, Vec<u8>)>,
    pub(super) waiting: HashSet<SegmentId, RandomState>,
    pub(super) changes: Changes,
}

impl Segments {
    /// Opens the archive at `path`, `.../memory/context/segments.jsonl`, and reads what is there: a
    /// row for each segment, not its text.
    ///
    /// # Errors
    ///
    /// If the file is there and cannot be read. Damage is no error: [`damage`](Self::damage) tells.
    pub fn open(path: impl Into<PathBuf>, limits: Limits, now: Timestamp) -> Result<Self> {
        let path = path.into();
        let mut segments = Self {
            forgotten: Forgotten::beside(&path),
            file: SegmentFile::new(path),
            limits,
            mark: Mark::default(),
            rows: Vec::new(),
            places: HashMap::default(),
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
        segments.catch_up()?;
        segments.evict(now);
        segments.changes = Changes::default();
        Ok(segments)
    }

    /// Where the file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// How many segments there are, those that wait for a commit not counted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// What was wrong with the file when it was read.
    #[must_use]
    pub fn damage(&self) -> &Damage {
        &self.damage
    }

    /// The segments without their texts, in the order of the file.
    pub fn rows(&self) -> impl Iterator<Item = RowRef<'_>> {
        self.rows.iter().filter(|row| row.live).filter_map(|row| self.names.show(row))
    }

    /// A segment without its text.
    #[must_use]
    pub fn row(&self, id: SegmentId) -> Option<RowRef<'_>> {
        let place = *self.places.get(&id)?;
        self.names.show(self.rows.get(place as usize)?)
    }

    /// Where in the file the line of a segment is: its offset, and its length without the line break.
    /// It is there until the file is written anew.
    pub(crate) fn place(&self, id: SegmentId) -> Option<(u64, u32)> {
        let row = self.rows.get(*self.places.get(&id)? as usize)?;
        Some((row.offset, row.length))
    }

    /// How often the file was written anew: as far as this process has read it, and by now.
    pub(crate) fn generations(&self) -> (u64, u64) {
        (self.mark.generation(), self.file.generation())
    }

    /// How many segments wait for a commit.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.pending.len()
    }

    /// Writes what waits. When this returns it is on the disk, whatever happens next.
    ///
    /// # Errors
    ///
    /// If the lock is not to be had, or the file cannot be written. What waits, waits on.
    pub fn commit(&mut self, now: Timestamp) -> Result<Changes> {
        if self.pending.is_empty() {
            self.catch_up()?;
            self.evict(now);
            return Ok(std::mem::take(&mut self.changes));
        }
        let lock = self.begin()?;
        // Another process may have been faster.
        let places = &self.places;
        self.pending.retain(|(id, _)| !places.contains_key(id));
        // Or have forgotten it.
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
            // What was to be stored is stored. The file is written anew another time, then.
            let _ = self.write_anew(&lock, true);
        }
        Ok(std::mem::take(&mut self.changes))
    }

    /// Reads what other processes wrote meanwhile.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn refresh(&mut self) -> Result<Changes> {
        self.catch_up()?;
        Ok(std::mem::take(&mut self.changes))
    }

    /// Segments with their texts, in the order of `ids`; None for those that are not there. If the
    /// file changed underneath, it is read anew. A line that is no segment after all counts as
    /// unreadable from then on.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn get(&mut self, ids: &[SegmentId]) -> Result<Vec<Option<Segment>>> {
        let mut found = self.read_all(ids)?;
        let missed = |(id, segment): (&SegmentId, &Option<Segment>)| {
            segment.is_none() && self.places.contains_key(id)
        };
        if ids.iter().zip(&found).any(missed) {
            self.scan_anew()?;
            found = self.read_all(ids)?;
            // Their lines look like segments and are none. Else the whole file would be scanned whenever
            // somebody asks for one. What was said may stand in a later line.
            let places = &self.places;
            let left = ids
                .iter()
                .zip(&found)
                .filter(|(id, segment)| segment.is_none() && places.contains_key(id));
            let spoiled = self.spoiled.len();
            self.spoiled.extend(left.map(|(id, _)| *id));
            if self.spoiled.len() > spoiled {
                self.scan_anew()?;
                found = self.read_all(ids)?;
            }
        }
        Ok(found)
    }

    /// Every segment with its text, in the order of the file, one at a time in memory.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or `visit` fails.
    pub fn each(&mut self, mut visit: impl FnMut(Segment) -> Result<()>) -> Result<()> {
        self.catch_up()?;
        let Some(file) = self.file.open()? else { return Ok(()) };
        let mut lines = Lines::new(file, 0);
        loop {
            let line = lines.next().map_err(|e| self.file.failed("cannot read the archive", e))?;
            let Some(line) = line else { return Ok(()) };
            let Ok(segment) = serde_json::from_slice::<Segment>(line.bytes) else { continue };
            let place = self.places.get(&segment.id).and_then(|p| self.rows.get(*p as usize));
            if place.is_some_and(|row| row.offset == line.offset) {
                visit(segment)?;
            }
        }
    }

    /// Removes segments from memory and from the disk, and says how many were there. They are not taken
    /// in again: their ids are kept. Lines that were torn or could not be read go with them: they may
    /// hold a part of what is to be forgotten.
    ///
    /// # Errors
    ///
    /// If the lock is not to be had, or the file cannot be written. Then nothing is forgotten.
    pub fn forget(&mut self, ids: &HashSet<SegmentId>) -> Result<usize> {
        self.pending.retain(|(id, _)| !ids.contains(id));
        self.waiting.retain(|id| !ids.contains(id));
        if ids.is_empty() && self.file.open()?.is_none() {
            return Ok(0);
        }
        let lock = self.begin()?;
        // First: a run that is killed has nothing erased that could come back.
        self.forgotten.add(&lock, ids)?;
        let there: Vec<_> = ids.iter().filter(|id| self.places.contains_key(id)).copied().collect();
        if there.is_empty() && self.dead == 0 && self.unreadable.is_empty() {
            // Every line of it is of a segment that stays.
            self.file.remove_aside(&lock)?;
            return Ok(0);
        }
        for id in &there {
            self.remove(*id);
        }
        if let Err(e) = self.write_anew(&lock, false) {
            // Memory is to say what the disk says.
            let _ = self.scan_anew();
            return Err(e);
        }
        self.file.remove_aside(&lock)?;
        Ok(there.len())
    }
}

#[cfg(test)]
mod tests;

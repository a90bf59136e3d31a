//! The source of segments: on disk or in memory.

use std::collections::HashSet;

use ctx_core::{Result, Timestamp};
use foldhash::{HashMap, HashMapExt};

use crate::archive::{AddOutcome, Changes, Segments};
use ctx_search::block::is_recalled;
use ctx_search::search::Speaker;
use ctx_search::{Segment, SegmentId};

/// The source of truth, from which everything else in a store is derived.
#[derive(Debug)]
pub(super) enum Source {
    /// `segments.jsonl`.
    Disk(Box<Segments>),
    /// In memory only: for replays and tests.
    InMemory(InMemorySegments),
}

/// Segments in memory, in the order of arrival. They are not evicted by age, because replayed
/// segments are old.
#[derive(Debug, Default)]
pub(super) struct InMemorySegments {
    segments: Vec<Option<Segment>>,
    places: HashMap<SegmentId, usize>,
    oldest: usize,
    most: usize,
    changes: Changes,
    forgotten: HashSet<SegmentId>,
}

impl InMemorySegments {
    pub(super) fn new(most: usize) -> Self {
        Self { most, places: HashMap::new(), ..Self::default() }
    }

    fn insert(&mut self, segment: &Segment) -> AddOutcome {
        let id = segment.id;
        if segment.content.trim().is_empty() || is_recalled(&segment.content) {
            return AddOutcome::Empty;
        }
        if self.places.contains_key(&id) {
            return AddOutcome::Duplicate;
        }
        if self.forgotten.contains(&id) {
            return AddOutcome::Forgotten;
        }
        self.places.insert(id, self.segments.len());
        self.segments.push(Some(segment.clone()));
        self.changes.added.push(id);
        AddOutcome::New
    }

    fn evict(&mut self) {
        while self.places.len() > self.most && self.oldest < self.segments.len() {
            if let Some(segment) = self.segments[self.oldest].take() {
                self.places.remove(&segment.id);
                self.changes.removed.push(segment.id);
            }
            self.oldest += 1;
        }
    }

    fn get(&self, id: &SegmentId) -> Option<Segment> {
        self.segments.get(*self.places.get(id)?)?.clone()
    }

    fn forget(&mut self, ids: &HashSet<SegmentId>) -> usize {
        let mut gone = 0;
        self.forgotten.extend(ids);
        for id in ids {
            if let Some(place) = self.places.remove(id) {
                self.segments[place] = None;
                self.changes.removed.push(*id);
                gone += 1;
            }
        }
        gone
    }
}

impl Source {
    /// Adds a segment and returns the result.
    pub(super) fn insert(&mut self, segment: &Segment) -> Result<AddOutcome> {
        match self {
            Self::Disk(segments) => segments.insert(segment),
            Self::InMemory(held) => Ok(held.insert(segment)),
        }
    }

    pub(super) fn is_forgotten(&self, id: SegmentId) -> bool {
        match self {
            Self::Disk(segments) => segments.is_forgotten(id),
            Self::InMemory(held) => held.forgotten.contains(&id),
        }
    }

    /// Commits added segments, and evicts those that are too old or too many.
    pub(super) fn commit(&mut self, now: Timestamp) -> Result<Changes> {
        match self {
            Self::Disk(segments) => segments.commit(now),
            Self::InMemory(held) => {
                held.evict();
                Ok(std::mem::take(&mut held.changes))
            }
        }
    }

    /// Returns other processes' changes. Nothing is written.
    pub(super) fn refresh(&mut self) -> Result<Changes> {
        match self {
            Self::Disk(segments) => segments.refresh(),
            Self::InMemory(held) => Ok(std::mem::take(&mut held.changes)),
        }
    }

    /// The archive's generation as last read by this process, and its current one.
    pub(super) fn generations(&self) -> (u64, u64) {
        match self {
            Self::Disk(segments) => segments.generations(),
            Self::InMemory(_) => (0, 0),
        }
    }

    /// The number of unreadable lines.
    pub(super) fn unreadable(&self) -> usize {
        match self {
            Self::Disk(segments) => segments.damage().unreadable,
            Self::InMemory(_) => 0,
        }
    }

    /// Returns a segment's place in its file, if any.
    pub(super) fn place(&self, id: SegmentId) -> Option<(u64, u32)> {
        match self {
            Self::Disk(segments) => segments.place(id),
            Self::InMemory(_) => None,
        }
    }

    pub(super) fn get(&mut self, ids: &[SegmentId]) -> Result<Vec<Option<Segment>>> {
        match self {
            Self::Disk(segments) => segments.get(ids),
            Self::InMemory(held) => Ok(ids.iter().map(|id| held.get(id)).collect()),
        }
    }

    pub(super) fn forget(&mut self, ids: &HashSet<SegmentId>) -> Result<usize> {
        match self {
            Self::Disk(segments) => segments.forget(ids),
            Self::InMemory(held) => Ok(held.forget(ids)),
        }
    }

    /// Visits each segment's id, session, time and speaker, in order.
    pub(super) fn each_row(&self, mut each: impl FnMut(SegmentId, &str, Timestamp, Speaker<'_>)) {
        match self {
            Self::Disk(segments) => segments
                .rows()
                .for_each(|row| each(row.id, row.session, row.timestamp, row.speaker)),
            Self::InMemory(held) => held.segments.iter().flatten().for_each(|segment| {
                let speaker = Speaker::of(segment);
                each(segment.id, &segment.session_id, segment.timestamp, speaker);
            }),
        }
    }
}

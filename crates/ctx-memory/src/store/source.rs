//! Where the segments themselves are: on the disk, or in memory.

use std::collections::HashSet;

use ctx_core::{Result, Role, Timestamp};
use foldhash::{HashMap, HashMapExt};

use crate::archive::{Changes, Segments, Taken};
use crate::recall::is_recalled;
use crate::search::Said;
use crate::{Segment, SegmentId};

/// The truth that everything else in a store is derived from.
#[derive(Debug)]
pub(super) enum Source {
    /// `segments.jsonl`.
    Disk(Box<Segments>),
    /// Nothing outlives the process: for replays and tests.
    Held(Held),
}

/// Segments in memory, in the order in which they came. They are not evicted by age: what is replayed
/// is old.
#[derive(Debug, Default)]
pub(super) struct Held {
    segments: Vec<Option<Segment>>,
    places: HashMap<SegmentId, usize>,
    oldest: usize,
    most: usize,
    changes: Changes,
    forgotten: HashSet<SegmentId>,
}

impl Held {
    pub(super) fn new(most: usize) -> Self {
        Self { most, places: HashMap::new(), ..Self::default() }
    }

    fn take_in(&mut self, segment: &Segment) -> Taken {
        let id = segment.id;
        if segment.content.trim().is_empty() || is_recalled(&segment.content) {
            return Taken::Nothing;
        }
        if self.places.contains_key(&id) {
            return Taken::Known;
        }
        if self.forgotten.contains(&id) {
            return Taken::Forgotten;
        }
        self.places.insert(id, self.segments.len());
        self.segments.push(Some(segment.clone()));
        self.changes.added.push(id);
        Taken::New
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
    /// Takes a segment in, and says what became of it.
    pub(super) fn take_in(&mut self, segment: &Segment) -> Result<Taken> {
        match self {
            Self::Disk(segments) => segments.take_in(segment),
            Self::Held(held) => Ok(held.take_in(segment)),
        }
    }

    pub(super) fn is_forgotten(&self, id: SegmentId) -> bool {
        match self {
            Self::Disk(segments) => segments.is_forgotten(id),
            Self::Held(held) => held.forgotten.contains(&id),
        }
    }

    /// Makes what was taken in last, and lets go of what is too old or too much.
    pub(super) fn commit(&mut self, now: Timestamp) -> Result<Changes> {
        match self {
            Self::Disk(segments) => segments.commit(now),
            Self::Held(held) => {
                held.evict();
                Ok(std::mem::take(&mut held.changes))
            }
        }
    }

    /// What others made of it meanwhile. Nothing is written.
    pub(super) fn refresh(&mut self) -> Result<Changes> {
        match self {
            Self::Disk(segments) => segments.refresh(),
            Self::Held(held) => Ok(std::mem::take(&mut held.changes)),
        }
    }

    /// How often the archive was written anew: as far as this process has read it, and by now.
    pub(super) fn generations(&self) -> (u64, u64) {
        match self {
            Self::Disk(segments) => segments.generations(),
            Self::Held(_) => (0, 0),
        }
    }

    /// Lines that could not be read.
    pub(super) fn unreadable(&self) -> usize {
        match self {
            Self::Disk(segments) => segments.damage().unreadable,
            Self::Held(_) => 0,
        }
    }

    /// Where a segment is in its file, if it is in one.
    pub(super) fn place(&self, id: SegmentId) -> Option<(u64, u32)> {
        match self {
            Self::Disk(segments) => segments.place(id),
            Self::Held(_) => None,
        }
    }

    pub(super) fn get(&mut self, ids: &[SegmentId]) -> Result<Vec<Option<Segment>>> {
        match self {
            Self::Disk(segments) => segments.get(ids),
            Self::Held(held) => Ok(ids.iter().map(|id| held.get(id)).collect()),
        }
    }

    pub(super) fn forget(&mut self, ids: &HashSet<SegmentId>) -> Result<usize> {
        match self {
            Self::Disk(segments) => segments.forget(ids),
            Self::Held(held) => Ok(held.forget(ids)),
        }
    }

    /// Each segment's id, session and time, and who says it, in their order.
    pub(super) fn each_row(&self, mut each: impl FnMut(SegmentId, &str, Timestamp, Said<'_>)) {
        match self {
            Self::Disk(segments) => segments.rows().for_each(|row| {
                let by_user = *row.role == Role::User;
                let said = Said { by_user, name: row.name };
                each(row.id, row.session, row.timestamp, said);
            }),
            Self::Held(held) => held.segments.iter().flatten().for_each(|segment| {
                let said = Said::of(segment);
                each(segment.id, &segment.session_id, segment.timestamp, said);
            }),
        }
    }
}

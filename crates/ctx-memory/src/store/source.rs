//! Segments in memory: for replays and tests.

use std::collections::HashSet;

use ctx_core::{Result, Timestamp};
use foldhash::{HashMap, HashMapExt};

use crate::archive::{AddOutcome, ArchiveRow, Changes, Source};
use ctx_search::block::is_recalled;
use ctx_search::search::Speaker;
use ctx_search::{Segment, SegmentId};

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

    fn evict(&mut self) {
        while self.places.len() > self.most && self.oldest < self.segments.len() {
            if let Some(segment) = self.segments[self.oldest].take() {
                self.places.remove(&segment.id);
                self.changes.removed.push(segment.id);
            }
            self.oldest += 1;
        }
    }
}

impl Source for InMemorySegments {
    fn insert(&mut self, segment: &Segment) -> Result<AddOutcome> {
        let id = segment.id;
        if segment.content.trim().is_empty() || is_recalled(&segment.content) {
            return Ok(AddOutcome::Empty);
        }
        if self.places.contains_key(&id) {
            return Ok(AddOutcome::Duplicate);
        }
        if self.forgotten.contains(&id) {
            return Ok(AddOutcome::Forgotten);
        }
        self.places.insert(id, self.segments.len());
        self.segments.push(Some(segment.clone()));
        self.changes.added.push(id);
        Ok(AddOutcome::New)
    }

    fn is_forgotten(&self, id: SegmentId) -> bool {
        self.forgotten.contains(&id)
    }

    fn forgotten(&self) -> Vec<SegmentId> {
        self.forgotten.iter().copied().collect()
    }

    fn commit(&mut self, _: Timestamp) -> Result<Changes> {
        self.evict();
        self.refresh()
    }

    fn refresh(&mut self) -> Result<Changes> {
        Ok(std::mem::take(&mut self.changes))
    }

    fn get(&mut self, ids: &[SegmentId]) -> Result<Vec<Option<Segment>>> {
        let get = |id| self.segments.get(*self.places.get(id)?)?.clone();
        Ok(ids.iter().map(get).collect())
    }

    fn forget(&mut self, ids: &HashSet<SegmentId>) -> Result<usize> {
        self.forgotten.extend(ids);
        let gone: Vec<_> = ids.iter().filter_map(|id| self.places.remove_entry(id)).collect();
        for (id, place) in &gone {
            self.segments[*place] = None;
            self.changes.removed.push(*id);
        }
        Ok(gone.len())
    }

    fn each_row(&self, each: &mut dyn FnMut(ArchiveRow<'_>)) {
        for segment in self.segments.iter().flatten() {
            each(ArchiveRow {
                id: segment.id,
                session: &segment.session_id,
                timestamp: segment.timestamp,
                speaker: Speaker::of(segment),
                place: None,
            });
        }
    }

    fn count(&self) -> usize {
        self.places.len()
    }
}

//! The searchable state of a store.

use foldhash::{HashMap, HashMapExt};

use crate::archive::Source;
use crate::{MemorySettings, Vectors};
use ctx_search::lexical::Scores;
use ctx_search::near::{Direction, EXACT_UP_TO, Rows};
use ctx_search::search::top_rows;
use ctx_search::{Hit, IdTable, Query, SearchIndex, Segment, SegmentId};

/// The number of top lexical rows whose cosine is also computed if there are too many vectors for all.
const BY_WORDS: usize = 256;

/// The same for hash vectors: a row that shares no word with a query is not near it either.
const HASHED_BY_WORDS: usize = 512;

/// The number of sampled rows whose cosine is always computed, to know the lowest cosine.
const SAMPLED: usize = 512;

/// A reply is looked for among this many last segments of a turn.
const REPLIES: usize = 4;

/// The maximum number of segments of a turn that are walked.
const LONGEST_TURN: usize = 4_096;

/// The rows of a store: their words, their vectors, and segments that are not yet on disk.
#[derive(Debug, Default)]
pub(super) struct Live {
    pub(super) index: SearchIndex,
    /// The rows that were not removed, by id.
    rows: IdTable,
    /// By row: the segment's place in the archive, if known.
    places: Vec<Option<(u64, u32)>>,
    /// Segments that were added and are not on disk.
    pub(super) pending: HashMap<SegmentId, Segment>,
    /// Rows on disk whose words are not indexed yet.
    pub(super) wordless: Vec<u32>,
    pub(super) vectors: Option<Rows>,
    /// Rows that still need a hash vector.
    pub(super) vectorless: Vec<u32>,
    /// Whether vectors are hashes of words.
    pub(super) hashed: bool,
    /// With more vectors than this, a query is compared with candidates only.
    pub(super) exact_up_to: usize,
    /// Counts how often the rows were renumbered.
    pub(super) numbering: u64,
}

/// Returns the function that gives the id of a row to an [`IdTable`].
fn id_in(index: &SearchIndex) -> impl Fn(u32) -> SegmentId {
    |row| index.ids()[row as usize]
}

impl Live {
    pub(super) fn new(settings: &MemorySettings, numbering: u64) -> Self {
        Self {
            index: SearchIndex::new(settings.search.clone()),
            hashed: matches!(settings.vectors, Vectors::Hash),
            rows: IdTable::default(),
            pending: HashMap::new(),
            numbering,
            exact_up_to: EXACT_UP_TO,
            ..Self::default()
        }
    }

    /// Records a row of the index.
    pub(super) fn add(&mut self, row: u32) {
        self.rows.insert(row, id_in(&self.index));
    }

    pub(super) fn row(&self, id: SegmentId) -> Option<u32> {
        self.rows.get(&id, id_in(&self.index))
    }

    pub(super) fn id(&self, row: u32) -> Option<SegmentId> {
        self.index.ids().get(row as usize).copied()
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns a segment's place in the archive, if known.
    pub(super) fn place(&self, id: SegmentId) -> Option<(u64, u32)> {
        self.places.get(self.row(id)? as usize).copied().flatten()
    }

    /// Makes room for so many more rows.
    pub(super) fn reserve(&mut self, more: usize) {
        self.rows.reserve(more, id_in(&self.index));
    }

    /// Returns the row of a segment, which is probably the one after `last`: lists of segments are mostly
    /// in the order of the rows.
    pub(super) fn row_after(&self, last: Option<u32>, id: SegmentId) -> Option<u32> {
        let next = last.map_or(0, |last| last.saturating_add(1));
        if self.index.removed() == 0 && self.id(next) == Some(id) {
            Some(next)
        } else {
            self.row(id)
        }
    }

    /// Records the places of all segments of the source.
    pub(super) fn locate_all(&mut self, source: &dyn Source) {
        self.places.resize(self.index.row_count(), None);
        let mut row = None;
        source.each_row(&mut |of| {
            row = self.row_after(row, of.id);
            if let Some(known) = row.and_then(|row| self.places.get_mut(row as usize)) {
                *known = of.place;
            }
        });
    }

    /// Records the places of segments.
    pub(super) fn locate(
        &mut self,
        ids: impl IntoIterator<Item = SegmentId>,
        place: impl Fn(SegmentId) -> Option<(u64, u32)>,
    ) {
        self.places.resize(self.index.row_count(), None);
        for id in ids {
            if let Some(row) = self.row(id)
                && let Some(known) = self.places.get_mut(row as usize)
            {
                *known = place(id);
            }
        }
    }

    pub(super) fn remove(&mut self, id: SegmentId) {
        self.pending.remove(&id);
        if let Some(row) = self.rows.remove(&id, id_in(&self.index)) {
            self.index.remove(row);
        }
    }

    /// Returns the previous and next turn of a segment in its session.
    pub(super) fn neighbours(&self, id: SegmentId) -> Vec<SegmentId> {
        let rows = self.row(id).map_or([None, None], |row| self.index.neighbours_of(row));
        let there = |row: u32| self.id(row).filter(|id| self.row(*id).is_some());
        rows.into_iter().flatten().filter_map(there).collect()
    }

    /// Returns the segments after one in its session, until the user's next message: the last
    /// first, at most [`REPLIES`].
    pub(super) fn replies(&self, id: SegmentId) -> Vec<SegmentId> {
        let after = |row: &u32| self.index.neighbours_of(*row)[1];
        let rows = std::iter::successors(self.row(id).as_ref().and_then(after), after);
        let rows = rows.take_while(|row| !self.index.is_by_user(*row)).take(LONGEST_TURN);
        let there = |row: u32| self.id(row).filter(|id| self.row(*id).is_some());
        let mut replies: Vec<_> = rows.filter_map(there).collect();
        replies.reverse();
        replies.truncate(REPLIES);
        replies
    }

    /// Searches. `vector` is the query's vector, `weight` the weight of vectors.
    pub(super) fn search(
        &self,
        query: &Query<'_>,
        vector: Option<&[f32]>,
        weight: f32,
    ) -> Vec<Hit> {
        let counts = weight > 0.0 && (!self.hashed || self.index.has_long_segments());
        let direction = vector.and_then(Direction::of).filter(|_| counts);
        let vectors = self.vectors.as_ref().filter(|vectors| vectors.count() > 0);
        let (Some(direction), Some(vectors)) = (direction, vectors) else {
            return self.index.search(query, None);
        };
        if direction.as_slice().len() != vectors.dimensions() {
            return self.index.search(query, None);
        }
        let fill = |lexical: &Scores, cosines: &mut Scores| {
            match query.session {
                // All rows of the session: a large store's candidates may include none of them.
                Some(session) if !self.hashed => {
                    vectors.some(self.index.rows_of(session), &direction, cosines);
                }
                _ => self.fill(vectors, &direction, lexical, cosines),
            }
        };
        self.index.search(query, Some((weight, &fill)))
    }

    /// Computes the cosines of all rows, or of candidates if there are many.
    fn fill(&self, vectors: &Rows, query: &Direction, lexical: &Scores, cosines: &mut Scores) {
        let best = |count: usize| top_rows(lexical.iter(), count, 0.0);
        if self.hashed {
            // Hash vectors alone produce no hit: rows without a shared word are near by chance.
            return vectors.some(best(HASHED_BY_WORDS), query, cosines);
        }
        if vectors.count() <= self.exact_up_to {
            return vectors.all(query, cosines);
        }
        let step = (self.index.row_count() / SAMPLED).max(1);
        let sampled = (0..self.index.row_count() as u32).step_by(step);
        vectors.some(vectors.near(query).chain(best(BY_WORDS)).chain(sampled), query, cosines);
    }
}

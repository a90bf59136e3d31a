//! The searchable segments of a store.

use std::sync::Arc;

use ctx_core::Timestamp;

use super::buffers::{BufferPool, SearchBuffers};
use super::fuse::{fuse, min_max, of_most};
use super::head::lexical_head;
use super::query::terms_of;
use super::speaker::{Speaker, Speakers, least_weight};
use super::spread::{share_best, spread};
use super::top::{top, top_rows};
use super::turns::Turns;
use super::{Fusion, Hit, Query, ScoreParts, SearchSettings, work};
use crate::lexical::{Bm25, Delta, Postings, QueryTerm, Scores, score_rows};
use crate::{Segment, SegmentId};

/// Pieces per segment from which vectors of hashed words count.
const LONG: f32 = 1.5;

/// Ranks segments. Rows are numbered from 0 in the order in which they are added, which is the
/// order of the archive.
#[derive(Default)]
pub struct SearchIndex {
    pub(super) settings: SearchSettings,
    pub(super) turns: Turns,
    pub(super) speakers: Speakers,
    /// Pieces on disk, then pieces being written, then new ones.
    pub(super) stored: Option<Stored>,
    pub(super) frozen: Vec<Delta>,
    pub(super) delta: Delta,
    /// Rows that were removed.
    pub(super) gone: Vec<u32>,
    rooms: BufferPool,
}

impl SearchIndex {
    /// Returns an empty index.
    #[must_use]
    pub fn new(settings: SearchSettings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// Adds a segment and returns its row. It can be searched at once. Within a session, segments
    /// must be added in the order of the conversation.
    pub fn add(&mut self, segment: &Segment) -> u32 {
        let said = Speaker::of(segment);
        let row = self.add_row(segment.id, &segment.session_id, segment.timestamp, said);
        self.delta.add(row, &lexical_head(segment), &segment.content);
        row
    }

    /// Adds a row whose words are, or will be, in a stored index.
    pub fn add_row(
        &mut self,
        id: SegmentId,
        session: &str,
        time: Timestamp,
        said: Speaker<'_>,
    ) -> u32 {
        self.speakers.add(said);
        self.turns.add(id, session, time, said.by_user)
    }

    /// The number of rows.
    pub fn row_count(&self) -> usize {
        self.turns.len()
    }

    /// Returns the best segments for a query, best first; of equal scores, the earlier turn first.
    /// Segments that do not match at all are never returned.
    pub fn search(&self, query: &Query<'_>, vectors: Option<Vectors<'_>>) -> Vec<Hit> {
        let mut room = self.rooms.take();
        let hits = self.search_in(&mut room, query, vectors);
        self.rooms.give(room);
        hits
    }

    fn search_in(
        &self,
        room: &mut SearchBuffers,
        query: &Query<'_>,
        vectors: Option<Vectors<'_>>,
    ) -> Vec<Hit> {
        let settings = &self.settings;
        let terms = terms_of(query.text);
        self.score_words(room, &terms, query.session);
        let SearchBuffers { bm25, lexical, cosines, .. } = room;
        cosines.reset(self.row_count());
        if let Some((_, fill)) = vectors {
            fill(lexical, cosines);
            self.leave_out(cosines, query.session);
        }
        // From here on only these rows matter: the others are not near, and share too few words.
        let (most, least) = self.bounds(lexical, query.limit);
        let rows = lexical.rows_from(least, cosines);
        let lexical: Vec<f32> = rows.iter().map(|row| of_most(lexical.get(*row), most)).collect();
        let cosine = |row: u32| if cosines.has(row) { cosines.get(row) } else { f32::NAN };
        let mut vector = Vec::new();
        let mut total = match vectors {
            None => lexical.clone(),
            Some((weight, _)) => {
                vector.extend(rows.iter().map(|row| cosine(*row)));
                min_max(&mut vector);
                fuse(settings.fusion, &lexical, &vector, weight)
            }
        };
        let speaker = self.speakers.weights(&terms, settings, &rows);
        total.iter_mut().zip(&speaker).for_each(|(score, weight)| *score *= weight);
        if self.speakers.is_work() {
            work::vary(&rows, &mut total, &self.turns, &self.speakers);
        }
        let decay = |row: u32| self.decay(row as usize, query.now);
        if settings.daily_decay < 1.0 {
            total.iter_mut().zip(&rows).for_each(|(score, row)| *score *= decay(*row));
        }
        let hit = |at: u32| {
            let at = at as usize;
            let row = *rows.get(at)?;
            let parts = ScoreParts {
                bm25: bm25.get(row),
                lexical: lexical[at],
                cosine: if vectors.is_some() { cosine(row) } else { 0.0 },
                vector: vector.get(at).copied().unwrap_or_default(),
                speaker: speaker[at],
                decay: decay(row),
            };
            Some(Hit { id: self.turns.id(row)?, score: total[at], parts })
        };
        let best = top(&total, query.limit, settings.min_score);
        best.into_iter().filter_map(hit).collect()
    }

    /// Whether the segments are long enough for vectors of hashed words, which see a message whole,
    /// while words are scored by piece: with one piece each, both see the same.
    pub fn has_long_segments(&self) -> bool {
        let pieces: u64 = self.sources().iter().map(|source| source.corpus().pieces).sum();
        pieces as f32 >= LONG * self.row_count() as f32
    }

    /// Returns the best lexical score, and the lowest of a row that can be among the best `limit`
    /// without a vector: no speaker's weight is below [`least_weight`].
    fn bounds(&self, lexical: &Scores, limit: usize) -> (f32, f32) {
        let best = top_rows(lexical.iter(), limit.max(1), 0.0);
        let score = |row: Option<&u32>| row.map_or(0.0, |row| lexical.get(*row));
        let is_by_score = self.settings.fusion == Fusion::Weighted
            && self.settings.daily_decay >= 1.0
            && !self.speakers.is_work();
        let last = limit.checked_sub(1).and_then(|last| best.get(last)).filter(|_| is_by_score);
        // Rounding must not exclude a row.
        (score(best.first()), 0.999 * least_weight(&self.settings) * score(last))
    }

    /// Computes the lexical scores, and the BM25 scores they are based on.
    fn score_words(&self, room: &mut SearchBuffers, terms: &[QueryTerm], session: Option<&str>) {
        let settings = &self.settings;
        let SearchBuffers { pieces, bm25, lexical, .. } = room;
        let constants = Bm25 { k1: settings.k1, b: settings.b };
        bm25.reset(self.row_count());
        lexical.reset(self.row_count());
        score_rows(terms, &self.sources(), constants, pieces, bm25);
        self.leave_out(bm25, None);
        spread(bm25, &self.turns, settings.spread, lexical);
        self.leave_out(lexical, None);
        if self.speakers.is_work() {
            work::share_request(bm25, lexical, &self.turns);
        }
        share_best(lexical, &self.turns, settings.session_share);
        self.leave_out(lexical, session);
    }

    /// Removes the scores of removed rows, and of rows outside `session` if one is given.
    fn leave_out(&self, scores: &mut Scores, session: Option<&str>) {
        self.gone.iter().for_each(|row| scores.remove(*row));
        if let Some(id) = session {
            let (session, sessions) = (self.turns.session(id), &self.turns.sessions);
            scores
                .retain(|row| session.is_some_and(|one| sessions.get(row as usize) == Some(&one)));
        }
    }

    fn decay(&self, row: usize, now: Timestamp) -> f32 {
        if self.settings.daily_decay >= 1.0 {
            return 1.0;
        }
        let then = self.turns.times.get(row).copied().unwrap_or(now);
        let days = now.0.saturating_sub(then.0).max(0) as f64 / 86_400_000.0;
        f64::from(self.settings.daily_decay.max(0.0)).powf(days) as f32
    }
}

/// The weight of the vectors, 0 to 1, and the function that computes the cosines; rows without one
/// rank worst. It gets the lexical scores, so that it can also compute the cosines of lexical
/// candidates.
pub(super) type Vectors<'a> = (f32, &'a dyn Fn(&Scores, &mut Scores));

/// An index on disk.
pub(super) type Stored = Arc<dyn Postings + Send + Sync>;

#[cfg(test)]
mod tests {
    use ctx_core::Role;
    use uuid::Uuid;

    use super::*;
    use crate::{Metadata, SegmentId};

    /// 8 May 2023, in milliseconds.
    const DAY: i64 = 1_683_504_000_000;

    fn segment(row: u128, session: &str, name: &str, content: &str) -> Segment {
        Segment {
            id: SegmentId(Uuid::from_u128(row)),
            agent_id: "main".into(),
            session_id: session.into(),
            timestamp: Timestamp(DAY),
            archived_at: None,
            role: Role::User,
            name: Some(name.into()),
            content: content.into(),
            tokens: 1,
            metadata: Metadata::default(),
            entry_id: None,
        }
    }

    fn index(settings: SearchSettings) -> SearchIndex {
        let mut index = SearchIndex::new(settings);
        let said = [
            ("a", "Ann", "Which pet did you adopt?"),
            ("a", "Bob", "A beagle, three weeks ago"),
            ("b", "Ann", "The garden needs rain"),
            ("b", "Bob", "My beagle loves the garden"),
        ];
        for (row, (session, name, content)) in said.into_iter().enumerate() {
            assert_eq!(index.add(&segment(row as u128, session, name, content)), row as u32);
        }
        index
    }

    fn query(text: &str) -> Query<'_> {
        Query { text, session: None, limit: 10, now: Timestamp(DAY) }
    }

    fn rows(hits: &[Hit]) -> Vec<u128> {
        hits.iter().map(|hit| hit.id.0.as_u128()).collect()
    }

    fn alone() -> SearchSettings {
        SearchSettings { spread: 0.0, ..SearchSettings::default() }
    }

    #[test]
    fn only_matching_segments_are_hits_best_first() {
        let hits = index(alone()).search(&query("beagle garden"), None);
        assert_eq!(rows(&hits), [3, 2, 1]);
        assert_eq!(hits[0].score, 1.0);
        assert!(hits[0].parts.bm25 > hits[1].parts.bm25 && hits[1].parts.lexical > 0.0);
        assert!(index(alone()).search(&query("piano"), None).is_empty());
        assert!(SearchIndex::default().search(&query("piano"), None).is_empty());
    }

    #[test]
    fn a_matching_question_also_finds_its_answer() {
        let hits = index(SearchSettings::default()).search(&query("adopted pet"), None);
        assert_eq!(rows(&hits), [0, 1], "the answer shares no word with the query");
        assert_eq!(rows(&index(alone()).search(&query("adopted pet"), None)), [0]);
    }

    #[test]
    fn scores_do_not_spread_from_one_session_into_another() {
        let hits = index(SearchSettings::default()).search(&query("three weeks"), None);
        assert_eq!(rows(&hits), [1, 0]);
    }

    #[test]
    fn segments_are_found_by_speaker_and_day() {
        let index = index(alone());
        assert_eq!(rows(&index.search(&query("Bob"), None)), [1, 3]);
        assert_eq!(index.search(&query("8 May 2023"), None).len(), 4);
    }

    #[test]
    fn equal_scores_are_in_the_order_of_the_conversation() {
        let hits = index(alone()).search(&query("2023"), None);
        assert_eq!(hits.len(), 4);
        let mut index = SearchIndex::new(alone());
        (0..9).for_each(|row| {
            index.add(&segment(row, "s", "Ann", "the same"));
        });
        let limited = Query { limit: 4, ..query("same") };
        assert_eq!(rows(&index.search(&limited, None)), [0, 1, 2, 3]);
        assert!(index.search(&Query { limit: 0, ..limited }, None).is_empty());
    }

    #[test]
    fn a_limit_does_not_change_the_best() {
        let mut index = SearchIndex::new(SearchSettings::default());
        let words = ["beagle", "garden", "rain", "piano", "Ann", "kitchen", "street", "window"];
        for row in 0..500u32 {
            let said = (0..1 + row % 5).map(|nth| words[(row * (nth + 3) % 8) as usize]);
            let (session, by) = (format!("s{}", row % 17), ["Ann", "Bob"][row as usize % 2]);
            let said = segment(row.into(), &session, by, &said.collect::<Vec<_>>().join(" "));
            let role = if row % 3 == 0 { Role::User } else { Role::Assistant };
            index.add(&Segment { role, ..said });
        }
        let near = |_: &Scores, cosines: &mut Scores| {
            (0..500).step_by(7).for_each(|row| cosines.set(row, (row % 91) as f32 / 91.0));
        };
        for vectors in [None, Some((0.3, &near as &dyn Fn(&Scores, &mut Scores)))] {
            for text in ["beagle garden", "what did Ann say about rain?", "piano"] {
                let best = |limit| {
                    let hits = index.search(&Query { limit, ..query(text) }, vectors);
                    hits.iter().map(|hit| (hit.id, hit.score)).collect::<Vec<_>>()
                };
                let all = best(500);
                for limit in [1, 5, 20] {
                    assert_eq!(best(limit), all[..limit], "{text}");
                }
            }
        }
    }

    #[test]
    fn a_search_can_be_limited_to_one_session() {
        let index = index(SearchSettings::default());
        let one = Query { session: Some("b"), ..query("beagle") };
        assert_eq!(rows(&index.search(&one, None)), [3, 2]);
        assert!(index.search(&Query { session: Some("z"), ..one }, None).is_empty());
    }

    #[test]
    fn vectors_count_by_their_weight_and_a_row_without_a_vector_ranks_worst() {
        let index = index(alone());
        let of_rows = [0.1, 0.2, 0.9];
        let fill = |_: &Scores, cosines: &mut Scores| {
            (0..).zip(of_rows).for_each(|(row, cosine)| cosines.set(row, cosine));
        };
        let search = |weight| index.search(&query("beagle"), Some((weight, &fill)));
        assert_eq!(rows(&search(1.0))[0], 2);
        let mixed = search(0.5);
        assert_eq!(mixed[0].parts.cosine, 0.2);
        assert_eq!(rows(&search(0.0)), [1, 3]);
        let without = search(0.5).into_iter().find(|hit| hit.id.0.as_u128() == 3);
        assert_eq!(without.map(|hit| hit.parts.vector), Some(0.0));
    }

    #[test]
    fn age_lowers_a_score_if_configured() {
        let settings = SearchSettings { daily_decay: 0.995, ..alone() };
        let later = Query { now: Timestamp(DAY + 24 * 3_600_000), ..query("beagle") };
        let hits = index(settings).search(&later, None);
        assert!((hits[0].parts.decay - 0.995).abs() < 1e-5);
        assert!((hits[0].score - hits[0].parts.decay).abs() < 1e-5);
        // A clock that was set back does not raise a score above a new segment's score.
        let before = Query { now: Timestamp(0), ..query("beagle") };
        let settings = SearchSettings { daily_decay: 0.995, ..alone() };
        assert_eq!(index(settings).search(&before, None)[0].parts.decay, 1.0);
    }

    #[test]
    fn weak_hits_are_dropped_if_configured() {
        let settings = SearchSettings { min_score: 0.99, ..alone() };
        assert_eq!(index(settings).search(&query("beagle garden"), None).len(), 1);
    }
}

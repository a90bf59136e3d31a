//! Changes to an index during searches: rows are added, stored and removed.

use ctx_core::text::head_bytes;
use std::ops::Range;

use foldhash::{HashMap, HashSet, HashSetExt};

use super::SearchIndex;
use super::head::lexical_head;
use super::index::Stored;
use super::query::telling_terms_of;
use crate::lexical::{Corpus, Delta, Postings, pieces, rarity};
use crate::{Segment, SegmentId};
use ctx_text::each_term;

impl SearchIndex {
    /// Adds the words of a row that has none yet.
    pub fn add_words(&mut self, row: u32, segment: &Segment) {
        self.delta.add(row, &lexical_head(segment), &segment.content);
    }

    /// Removes a row from all searches.
    pub fn remove(&mut self, row: u32) {
        self.gone.push(row);
    }

    /// The number of removed rows.
    pub fn removed(&self) -> usize {
        self.gone.len()
    }

    /// The number of new pieces.
    pub fn fresh(&self) -> usize {
        self.delta.owners().len()
    }

    /// Freezes the new pieces, to be stored. They can still be searched.
    pub fn freeze(&mut self) {
        if self.fresh() > 0 {
            self.frozen.push(std::mem::take(&mut self.delta));
        }
    }

    /// Splits the words of a row that has none yet, for [`add_frozen`](Self::add_frozen).
    pub fn words_of(row: u32, segment: &Segment) -> Delta {
        let mut delta = Delta::default();
        delta.add(row, &lexical_head(segment), &segment.content);
        delta
    }

    /// Adds words that were split elsewhere, as a frozen part.
    pub fn add_frozen(&mut self, words: Delta) {
        self.frozen.push(words);
    }

    /// Returns the number of frozen parts, and their rows.
    pub fn frozen_rows(&self) -> (usize, Vec<u32>) {
        let mut rows: Vec<u32> = self.frozen.iter().flat_map(Delta::owners).copied().collect();
        // The pieces of a segment are consecutive.
        rows.dedup();
        (self.frozen.len(), rows)
    }

    /// The number of pieces on disk.
    pub fn stored(&self) -> usize {
        self.stored.as_ref().map_or(0, |stored| stored.owners().len())
    }

    /// The number of pieces that are only in memory.
    pub fn unstored(&self) -> usize {
        self.fresh() + self.frozen.iter().map(|delta| delta.owners().len()).sum::<usize>()
    }

    /// Switches to an index that holds the previous one and the first `frozen` frozen parts.
    /// Returns the replaced parts, because dropping them takes time.
    pub fn publish(&mut self, stored: Stored, frozen: usize) -> (Option<Stored>, Vec<Delta>) {
        let frozen = self.frozen.drain(..frozen.min(self.frozen.len())).collect();
        (self.stored.replace(stored), frozen)
    }

    /// The segments, by row.
    pub fn ids(&self) -> &[SegmentId] {
        &self.turns.ids
    }

    /// Returns the rows of the previous and next turn in the same session.
    pub fn neighbours_of(&self, row: u32) -> [Option<u32>; 2] {
        self.turns.neighbours_of(row)
    }

    /// Whether a row is a message of the user.
    pub fn is_by_user(&self, row: u32) -> bool {
        self.speakers.is_user(row)
    }

    /// Returns the session of that name, or the only one whose name begins with it.
    pub fn session_named(&self, name: &str) -> Option<&str> {
        let mut alike = self.turns.session_names().filter(|known| known.starts_with(name));
        match self.turns.session(name) {
            Some(_) => alike.find(|known| *known == name),
            None => alike.next().filter(|_| !name.is_empty() && alike.next().is_none()),
        }
    }

    /// The rows of a session.
    pub fn rows_of(&self, session: &str) -> impl Iterator<Item = u32> {
        self.turns.rows_of(session)
    }

    pub(super) fn sources(&self) -> Vec<&dyn Postings> {
        let stored = self.stored.iter().map(|stored| -> &dyn Postings { &**stored });
        let frozen = self.frozen.iter().map(|delta| -> &dyn Postings { delta });
        stored.chain(frozen).chain([&self.delta as &dyn Postings]).collect()
    }

    /// Returns the terms that a passage about the query would contain.
    pub fn needs(&self, query: &str) -> Needs {
        let sources = self.sources();
        let all = sources.iter().fold(Corpus::default(), |sum, source| sum.and(source.corpus()));
        let pieces = all.pieces.max(FEW);
        let mut squares = 0.0;
        let need = |term: crate::lexical::QueryTerm| {
            let found = sources.iter().map(|source| source.frequency(&term.text)).sum();
            let rarity = rarity(pieces, found);
            squares += rarity * rarity * if found == 0 { ABSENT } else { 1.0 };
            Need { rarity, term: term.text }
        };
        let terms: Vec<Need> = telling_terms_of(query).into_iter().map(need).collect();
        let least = if terms.is_empty() { 0.0 } else { LEAST * rarity(pieces, 0) };
        Needs { terms, length: squares.sqrt().max(least) }
    }
}

ctx_core::partial_debug!(SearchIndex, it, rows = it.row_count());

/// The terms that a passage should contain.
#[derive(Clone, Debug, PartialEq)]
pub struct Needs {
    pub terms: Vec<Need>,
    /// The length of the query as a vector of rarities.
    length: f32,
}

/// The minimum length, as a share of the rarity of a word that occurs nowhere: one common word is
/// not enough.
const LEAST: f32 = 0.5;

/// In an archive of fewer pieces each word would be common: it is judged as one of this many.
const FEW: u64 = 50;

/// How often a term counts that occurs nowhere: an archive without it lacks the answer.
const ABSENT: f32 = 2.0;

/// A query term and its rarity.
#[derive(Clone, Debug, PartialEq)]
pub struct Need {
    /// The normalised term.
    pub term: String,
    /// Its inverse document frequency.
    pub rarity: f32,
}

/// A passage that holds this much, relative to the length of the query, has a fit of [`ENOUGH`].
const ENOUGH_AT: f32 = 0.55;
const ENOUGH: f32 = 0.7;

/// Returns how well a text fits a query, 0 to 1, independently of other texts: the rarities of the
/// terms that its best piece shares with the query (`held`, by [`best_piece`]), relative to the
/// length of the query as a vector of rarities. So a text need not share all of a long query, and
/// common words alone are never enough. `ENOUGH` is the measured threshold between queries about an
/// archive and other queries (docs/memory.md).
pub fn fit(needs: &Needs, held: f32) -> f32 {
    if needs.length <= 0.0 {
        return 0.0;
    }
    1.0 - (1.0 - ENOUGH).powf(held / needs.length.powf(1.5) / ENOUGH_AT)
}

/// Returns how much of `needs` the best piece of a segment holds, and the piece's range: the sum of
/// the rarities of its terms, times the fourth root of the sum of their squares, so that one rare
/// term counts more than several common ones.
/// Only the first `most` bytes of the segment are examined.
pub fn best_piece(needs: &[Need], segment: &Segment, most: usize) -> (f32, Range<usize>) {
    let content = head_bytes(&segment.content, most);
    let places: HashMap<&str, usize> = needs.iter().map(|n| n.term.as_str()).zip(0..).collect();
    let head = lexical_head(segment);
    let (mut best, mut best_at) = (-1f32, 0..0);
    let mut found: HashSet<usize> = HashSet::new();
    let mut start = 0;
    for piece in pieces(content) {
        found.clear();
        for part in [&head, piece] {
            each_term(part, |term| found.extend(places.get(term.text)));
        }
        let shared = || found.iter().map(|at| needs[*at].rarity);
        let held = shared().sum::<f32>() * shared().map(|it| it * it).sum::<f32>().powf(0.25);
        let end = start + piece.len();
        if held > best {
            (best, best_at) = (held, start..end);
        }
        start = end;
    }
    (best.max(0.0), best_at)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ctx_core::{Role, Timestamp};

    use super::*;
    use crate::{Metadata, Query, SearchSettings};

    fn segment(n: u32, content: &str) -> Segment {
        Segment {
            id: SegmentId::of("s", &Role::User, &format!("{n} {content}")),
            agent_id: "main".into(),
            session_id: "s".into(),
            timestamp: Timestamp(0),
            archived_at: None,
            role: Role::User,
            name: None,
            content: content.into(),
            tokens: 1,
            metadata: Metadata::default(),
            entry_id: None,
        }
    }

    fn found(index: &SearchIndex, text: &str) -> Vec<(SegmentId, f32)> {
        let query = Query { text, session: None, limit: 10, now: Timestamp(0) };
        index.search(&query, None).into_iter().map(|hit| (hit.id, hit.parts.bm25)).collect()
    }

    fn index() -> (SearchIndex, Vec<Segment>) {
        let mut index = SearchIndex::new(SearchSettings {
            spread: 0.0,
            session_share: 0.0,
            ..Default::default()
        });
        let segments: Vec<_> = ["red apple", "green apple tree", "a tree in the garden"]
            .iter()
            .zip(0..)
            .map(|(content, n)| segment(n, content))
            .collect();
        segments.iter().for_each(|segment| {
            index.add(segment);
        });
        (index, segments)
    }

    #[test]
    fn frozen_and_stored_words_score_the_same_and_count_once() {
        let (mut index, segments) = index();
        let before = found(&index, "apple tree");
        index.freeze();
        index.freeze();
        assert_eq!((found(&index, "apple tree"), index.fresh()), (before.clone(), 0));
        let mut stored = Delta::default();
        for (row, segment) in (0..).zip(&segments) {
            stored.add(row, &lexical_head(segment), &segment.content);
        }
        let (none, frozen) = index.publish(Arc::new(stored), 1);
        assert!(none.is_none() && frozen.len() == 1);
        assert_eq!(found(&index, "apple tree"), before);
    }

    #[test]
    fn removed_rows_are_not_found_and_add_no_score_to_neighbours() {
        let (mut index, segments) = index();
        index.settings.spread = 0.4;
        index.remove(0);
        assert_eq!(found(&index, "red").len(), 0);
        assert_eq!(found(&index, "apple")[0].0, segments[1].id);
        assert_eq!(index.removed(), 1);
    }

    #[test]
    fn a_text_fits_by_the_rare_words_it_shares() {
        let mut index = SearchIndex::default();
        for n in 0..200 {
            index.add(&segment(n, "we write the code and test the code"));
        }
        let zebra = segment(201, "the zebra logo is purple");
        index.add(&zebra);
        let fits = |query: &str| {
            let needs = index.needs(query);
            fit(&needs, best_piece(&needs.terms, &zebra, 100).0)
        };
        assert!(fits("what colour is the zebra logo?") > 0.7);
        assert!(fits("zebra") > 0.7);
        let code = segment(0, "we write the code and test the code");
        let needs = index.needs("write a poem about the sea");
        assert!(fit(&needs, best_piece(&needs.terms, &code, 100).0) < 0.3);
        for common in ["code", "do the test", "what is it?", "and then"] {
            let needs = index.needs(common);
            assert!(fit(&needs, best_piece(&needs.terms, &code, 100).0) < 0.3, "{common}");
        }
        let late = segment(0, &format!("{} zebra", "x".repeat(2_000)));
        let held = |most| best_piece(&index.needs("zebra").terms, &late, most).0;
        assert!(held(1_900) <= 0.0 && held(3_000) > 0.0, "no more is read than is to be");
        assert_eq!(fits(""), 0.0);
    }
}

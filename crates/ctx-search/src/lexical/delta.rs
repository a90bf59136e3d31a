//! The in-memory index: added segments can be searched at once.

use foldhash::HashMap;

use super::{Corpus, Posting, Postings, QueryTerm, pieces};
use ctx_text::{TermKind, each_term};

/// Postings in memory: the segments added since the index on disk was written, or all of a small
/// store.
#[derive(Debug, Default)]
pub struct Delta {
    terms: HashMap<Box<str>, u32>,
    postings: Vec<Vec<Posting>>,
    owners: Vec<u32>,
    words: u64,
    /// Term counts of the piece being added; cleared after each.
    counts: HashMap<u32, u16>,
    /// Whether other terms than those in `terms` only count in the length of a piece.
    is_closed: bool,
}

impl Delta {
    /// Returns an empty index that can be searched for these terms only, which is cheaper to fill.
    pub fn for_query(query: &[QueryTerm]) -> Self {
        let mut delta = Self { is_closed: true, ..Self::default() };
        for term in query {
            let id = delta.postings.len() as u32;
            delta.terms.insert(term.text.as_str().into(), id);
            delta.postings.push(Vec::new());
        }
        delta
    }

    /// Adds a segment: `head` (its date and speaker) is put before each piece of `text`. Segments
    /// may be added in any order; a segment that is added twice counts twice.
    pub fn add(&mut self, segment: u32, head: &str, text: &str) {
        for piece in pieces(text) {
            let mut length = 0u64;
            for part in [head, piece] {
                self.count(part, &mut length);
            }
            self.words += length;
            let piece = self.owners.len() as u32;
            self.owners.push(segment);
            let length = u16::try_from(length).unwrap_or(u16::MAX);
            for (term, count) in self.counts.drain() {
                self.postings[term as usize].push(Posting { piece, count, length });
            }
        }
    }

    fn count(&mut self, text: &str, length: &mut u64) {
        let Self { terms, postings, counts, is_closed, .. } = self;
        each_term(text, |term| {
            // A whole name is a term, but does not count in the length of the piece.
            *length += u64::from(term.kind != TermKind::Whole);
            let id = match terms.get(term.text) {
                Some(&id) => id,
                None if *is_closed => return,
                None => {
                    let id = postings.len() as u32;
                    terms.insert(term.text.into(), id);
                    postings.push(Vec::new());
                    id
                }
            };
            let count = counts.entry(id).or_default();
            *count = count.saturating_add(1);
        });
    }

    fn of(&self, term: &str) -> &[Posting] {
        let id = self.terms.get(term);
        id.and_then(|&id| self.postings.get(id as usize)).map_or(&[], Vec::as_slice)
    }
}

impl Postings for Delta {
    fn corpus(&self) -> Corpus {
        Corpus { pieces: self.owners.len() as u64, words: self.words }
    }

    fn frequency(&self, term: &str) -> u64 {
        self.of(term).len() as u64
    }

    fn each_block(&self, term: &str, block: &mut dyn FnMut(&[Posting])) {
        block(self.of(term));
    }

    fn owners(&self) -> &[u32] {
        &self.owners
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_found_by_its_words_its_date_and_its_speaker_at_once() {
        let mut delta = Delta::default();
        delta.add(7, "8 May 2023 Caroline:", "I adopted a dog");
        for term in ["adopt", "dog", "may", "2023", "carolin"] {
            assert_eq!(delta.of(term), [Posting { piece: 0, count: 1, length: 8 }], "{term}");
        }
        assert_eq!(delta.frequency("cat"), 0);
        assert_eq!(delta.corpus(), Corpus { pieces: 1, words: 8 });
    }

    #[test]
    fn a_long_segment_is_in_several_pieces_each_with_its_head() {
        let mut delta = Delta::default();
        delta.add(3, "Ann:", &"alpha beta\n".repeat(100));
        assert_eq!(delta.owners(), [3, 3]);
        assert_eq!(delta.frequency("ann"), 2);
    }

    #[test]
    fn an_index_for_a_query_has_its_terms_with_the_same_statistics() {
        let term = |text: &str| QueryTerm { text: text.to_owned(), weight: 1.0 };
        let (mut all, mut some) =
            (Delta::default(), Delta::for_query(&[term("dog"), term("bird")]));
        for delta in [&mut all, &mut some] {
            delta.add(0, "", "a dog, two dogs and a cat");
            delta.add(1, "", "src/main.rs");
        }
        assert_eq!((some.of("dog"), some.corpus()), (all.of("dog"), all.corpus()));
        assert!(some.of("bird").is_empty() && some.of("cat").is_empty());
    }

    #[test]
    fn whole_names_do_not_increase_the_length_of_a_piece() {
        let mut delta = Delta::default();
        delta.add(0, "", "src/main.rs");
        assert_eq!(delta.of("src/main.rs"), [Posting { piece: 0, count: 1, length: 3 }]);
    }
}

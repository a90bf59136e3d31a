//! Searches facts.

use ctx_core::Timestamp;
use ctx_text::WordList;
use serde::Serialize;

use super::words::word_set;
use super::{Fact, FactStore};

/// A search for facts.
#[derive(Clone, Copy, Debug)]
pub struct FactQuery<'a> {
    /// The words.
    pub text: &'a str,
    /// Only facts of this session; `None` searches all sessions.
    pub session: Option<&'a str>,
    /// Facts that were valid at this time; `None` means now.
    pub at: Option<Timestamp>,
    /// The maximum number of facts. Default: 10.
    pub limit: usize,
}

impl<'a> FactQuery<'a> {
    /// Returns a search of all sessions for current facts.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        Self { text, session: None, at: None, limit: 10 }
    }
}

/// A search result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FactHit<'a> {
    /// The fact.
    pub fact: &'a Fact,
    /// The share of the query's weight that it contains, 0 to 1; rare words weigh more.
    pub score: f32,
}

/// Returns how many query words a fact must contain: all of two, half of up to eight, and 30 % of
/// more, at most six. The thresholds come from the system that the profile `memory-context`
/// follows.
fn threshold(words: usize) -> usize {
    match words {
        0..=2 => words,
        3..=8 => words.div_ceil(2),
        _ => (words * 3).div_ceil(10).min(6),
    }
}

/// Stems of words that address the assistant rather than the subject. A fact does not have to
/// contain them.
static ASKING: WordList = WordList::new("asking_stems");

/// Returns the query words that a fact may contain.
fn asked_for(text: &str) -> Vec<String> {
    let mut words = word_set(text);
    let is_asking = |word: &String| ASKING.contains(word.as_str());
    // A query of only such words means the words themselves.
    if !words.iter().all(is_asking) {
        words.retain(|word| !is_asking(word));
    }
    words
}

impl FactStore {
    /// Returns matching facts, best first; of equal scores, newer first.
    pub fn search(&self, query: &FactQuery<'_>) -> Vec<FactHit<'_>> {
        let words = asked_for(query.text);
        let least = threshold(words.len());
        let found = self.index.matches(&words, usize::MAX).into_iter();
        let mut hits: Vec<FactHit<'_>> = found
            .filter(|found| found.words >= least)
            .filter_map(|found| {
                Some(FactHit { fact: self.facts.get(found.place)?, score: found.score })
            })
            .filter(|hit| query.session.is_none_or(|session| hit.fact.session_id == session))
            .filter(|hit| match query.at {
                Some(at) => hit.fact.held_at(at),
                None => hit.fact.is_current(),
            })
            .collect();
        hits.sort_unstable_by(|a, b| {
            b.score
                .total_cmp(&a.score)
                .then(b.fact.timestamp.cmp(&a.fact.timestamp))
                .then(a.fact.id.cmp(&b.fact.id))
        });
        hits.truncate(query.limit);
        hits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_address_the_assistant_are_not_required() {
        for (text, expected) in [
            ("What did I say about my cat?", "cat"),
            ("Do you remember what I told you about the port?", "port"),
            ("What do you know of cats that I recalled or mentioned?", "cat"),
            ("who said so?", "said"),
        ] {
            assert_eq!(asked_for(text).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn longer_questions_require_a_smaller_matching_share() {
        let least = [0, 1, 2, 3, 4, 8, 9, 10, 20, 100].map(threshold);
        assert_eq!(least, [0, 1, 2, 2, 2, 4, 3, 3, 6, 6]);
    }
}

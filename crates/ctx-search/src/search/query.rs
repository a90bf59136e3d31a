//! Extracts the search terms of a question.

use crate::lexical::QueryTerm;
use ctx_text::{TermKind, each_term};

/// The maximum number of terms: a pasted log is not a question.
const MOST_TERMS: usize = 256;

/// Returns the terms of a question, deduplicated. Stop words are dropped if any other term is
/// present: they are the most expensive to look up and change no ranking (docs/memory.md).
pub fn terms_of(question: &str) -> Vec<QueryTerm> {
    let (terms, empty) = parted(question);
    if terms.is_empty() { empty } else { terms }
}

/// Returns the terms of a question without stop words. "What is it?" has none.
pub(super) fn telling_terms_of(question: &str) -> Vec<QueryTerm> {
    parted(question).0
}

/// Splits the terms into content words and stop words.
fn parted(question: &str) -> (Vec<QueryTerm>, Vec<QueryTerm>) {
    let mut terms: Vec<QueryTerm> = Vec::new();
    let mut empty: Vec<QueryTerm> = Vec::new();
    each_term(question, |term| {
        let list = if term.kind == TermKind::Stop { &mut empty } else { &mut terms };
        if let Some(known) = list.iter_mut().find(|known| known.text == term.text) {
            known.weight += 1.0;
        } else if list.len() < MOST_TERMS {
            list.push(QueryTerm { text: term.text.to_owned(), weight: 1.0 });
        }
    });
    (terms, empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(question: &str) -> Vec<String> {
        terms_of(question).into_iter().map(|term| term.text).collect()
    }

    #[test]
    fn question_words_are_dropped_if_there_are_other_terms() {
        assert_eq!(words("When did Caroline adopt the dog?"), ["carolin", "adopt", "dog"]);
        assert_eq!(words("Who are you?"), ["who", "are", "you"]);
        assert_eq!(words("?!"), [""; 0]);
        assert_eq!(telling_terms_of("Who are you?"), []);
    }

    #[test]
    fn a_word_that_is_said_twice_counts_twice() {
        let terms = terms_of("dog, dogs");
        assert_eq!(terms, [QueryTerm { text: "dog".into(), weight: 2.0 }]);
    }

    #[test]
    fn a_pasted_log_is_not_a_question() {
        let log: String = (0..10_000).map(|n| format!("line{n} ")).collect();
        assert_eq!(words(&log).len(), MOST_TERMS);
    }
}

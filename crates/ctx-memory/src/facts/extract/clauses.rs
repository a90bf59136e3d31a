//! Splits sentences into clauses.

use ctx_core::text::{Slice, head_chars};
use ctx_text::WordList;

/// Words that start a new clause after a comma.
static OPENERS: WordList = WordList::new("clause.openers");
/// Words that start a question.
static ASKS: WordList = WordList::new("clause.asks");
/// Beginnings of a condition or an example: the sentence does not state a fact.
static CONDITIONS: WordList = WordList::new("clause.conditions");
/// Beginnings of a clause about what is tried or felt, which states no fact: "I'm looking for".
static EFFORTS: WordList = WordList::new("clause.efforts");
/// Words that introduce a clause and say nothing.
static LEADS: WordList = WordList::new("clause.leads");
/// Beginnings of a reason, which stays with its clause, in languages without spaces.
static REASONS: WordList = WordList::new("clause.reasons_anywhere");

/// Returns the clauses of a sentence that do not ask: "we use Redis" of "we use Redis, can you help?".
/// A clause starts after a comma, semicolon or dash before a word that opens one.
pub(super) fn stating_clauses(sentence: &str) -> Vec<&str> {
    if begins(&CONDITIONS, sentence) {
        return Vec::new();
    }
    let mut clauses = clauses(sentence);
    let is_question = sentence.trim_end_matches(['*', '"', ')', ' ']).ends_with(['?', '？']);
    // The last clause asks, and so do all clauses from the first question word on.
    let asks = |(at, clause): (usize, &&str)| {
        (at > 0 || is_question) && ASKS.contains(first_word(clause).as_str())
    };
    let first = clauses.iter().enumerate().position(asks).unwrap_or(clauses.len());
    clauses.truncate(first.min(clauses.len().saturating_sub(usize::from(is_question))));
    // What ends with a colon introduces a list or code.
    clauses.retain(|clause| !clause.ends_with([':', '：']));
    clauses.into_iter().map(bare).filter(|clause| !begins(&EFFORTS, clause)).collect()
}

fn begins(list: &WordList, text: &str) -> bool {
    let lower = head_chars(text, 32).to_lowercase();
    list.iter().any(|words| lower.starts_with(words))
}

/// Returns a clause without the words and marks that introduce or end it: "ok, so", "and".
fn bare(clause: &str) -> &str {
    let mut bare = clause.trim_start_matches(['*', '_', '"', '“', ' ']);
    for _ in 0..3 {
        let lead = LEADS.iter().find(|lead| {
            bare.get(..lead.len()).is_some_and(|start| start.eq_ignore_ascii_case(lead))
        });
        match lead.and_then(|lead| bare.get(lead.len()..)) {
            Some(rest) => bare = rest.trim_start_matches([',', '，', ' ']),
            None => break,
        }
    }
    bare.trim_end_matches(|c: char| ".,;:!。，；！*\"” ".contains(c))
}

fn clauses(sentence: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let (mut start, mut ticks, mut depth) = (0, false, 0u32);
    for (at, c) in sentence.char_indices() {
        let rest = sentence.slice(at + c.len_utf8()..);
        match c {
            '`' => ticks = !ticks,
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if ticks || depth > 0 => {}
            '，' if REASONS.begins(rest) => {}
            ',' | ';' | '—' | '–' if !opens(rest) => {}
            '-' if !(opens(rest) && sentence.slice(..at).ends_with(' ')) => {}
            ',' | ';' | '—' | '–' | '-' | '，' => {
                out.push(sentence.slice(start..at).trim());
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    out.push(sentence.slice(start..).trim());
    out
}

fn opens(rest: &str) -> bool {
    rest.starts_with(' ') && OPENERS.contains(first_word(rest).as_str())
}

/// Returns the first word of a clause in lower case, without a conjunction.
fn first_word(clause: &str) -> String {
    static CONJUNCTIONS: WordList = WordList::new("clause.conjunctions");
    let words = clause.split(|c: char| c.is_whitespace() || c == ',');
    let mut words = words.map(|word| word.replace('’', "'").to_lowercase());
    words.find(|word| !word.is_empty() && !CONJUNCTIONS.contains(word)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_separated_from_questions() {
        for (sentence, stated) in [
            (
                "I've chosen SQLite as the database, and I want port 5000, can you help, \
                 like with tests?",
                &["I've chosen SQLite as the database", "I want port 5000"][..],
            ),
            ("If you can, we use Redis.", &[]),
            ("Should we use Redis, or Memcached?", &[]),
            ("We use Redis, Kafka and Flink.", &["We use Redis, Kafka and Flink"]),
        ] {
            assert_eq!(stating_clauses(sentence), stated);
        }
    }
}

//! The sentences of a text that people wrote.

use ctx_text::output::{Pasted, is_data, prose_lines};
use ctx_text::{is_cjk, segments, sentences};

/// The characters of a sentence that are examined.
const EXAMINED: usize = 400;

/// Returns the sentences of a text's prose, without code, listings and logs.
pub fn prose(text: &str) -> impl Iterator<Item = &str> {
    let prose = segments(text).into_iter().filter(|segment| !segment.is_code);
    let prose = prose.filter_map(|segment| text.get(segment.range));
    let parts = prose.flat_map(prose_lines).flat_map(without_data);
    parts.flat_map(sentences).filter(|sentence| is_language(sentence))
}

/// Returns the parts of a text between its lines of data.
fn without_data(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let (mut start, mut at) = (0, 0);
    let mut pasted = Pasted::default();
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        if pasted.holds(line) || is_data(line) {
            out.extend(text.get(start..at));
            start = end;
        }
        at = end;
    }
    out.extend(text.get(start..));
    out
}

/// Whether a sentence consists mostly of letters: not a line of a log, a table or code.
fn is_language(sentence: &str) -> bool {
    let (mut letters, mut all) = (0usize, 0usize);
    // "The audit is on 2027-03-30." is a sentence, "2027-03-30 INFO up" is a line of a log.
    let has_words = sentence.starts_with(char::is_alphabetic);
    for c in sentence.chars().take(EXAMINED) {
        if !(c.is_whitespace() || has_words && c.is_ascii_digit()) {
            all += 1;
            // A Chinese character says as much as two letters.
            letters += usize::from(c.is_alphabetic()) + usize::from(is_cjk(c));
        }
    }
    all >= 3
        && letters * 10 >= all * 6
        && !sentence.starts_with(['{', '}', '|', '<', '$'])
        && !sentence.contains("\\n")
}

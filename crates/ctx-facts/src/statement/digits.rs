//! Numbers in words.

use std::borrow::Cow;
use std::ops::Range;

use ctx_core::text::{Slice, head_chars};
use ctx_text::{WordList, is_cjk, number};

use super::words;

/// Number words with their values: "four 4", "百 100".
static NUMBER_WORDS: WordList = WordList::new("slots.number_words");

/// What makes the next number an ordinal: 第.
static ORDINALS: WordList = WordList::new("slots.ordinals");

/// Writes numbers in words as digits: "four nodes" as "4 nodes", "三次" as "3次". The number one, and
/// Chinese numbers, only before a unit.
pub(super) fn digits(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut end = 0;
    let mut run: Option<(Range<usize>, u64)> = None;
    for range in words(text).chain(std::iter::once(text.len()..text.len())) {
        let word = text.slice(range.clone());
        let value = value_of(word);
        let joins = |until: usize| matches!(text.slice(until..range.start), "" | " " | "-");
        run = match (run, value) {
            (Some((known, sum)), Some(value)) if joins(known.end) => {
                Some((known.start..range.end, joined(sum, value)))
            }
            (known, value) => {
                if let Some((known, sum)) = known.filter(|(known, sum)| counts(text, known, *sum)) {
                    out.push_str(text.slice(end..known.start));
                    out.push_str(&sum.to_string());
                    end = known.end;
                }
                value.map(|value| (range, value))
            }
        };
    }
    if end == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(text.slice(end..));
    Cow::Owned(out)
}

fn value_of(word: &str) -> Option<u64> {
    if word.len() > 9 || word.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let lower = word.to_lowercase();
    let found =
        NUMBER_WORDS.iter().find_map(|entry| entry.strip_prefix(&*lower)?.strip_prefix(' '));
    found?.parse().ok()
}

/// Joins a number with the next word: 6 and 100, 20 and 5.
fn joined(sum: u64, value: u64) -> u64 {
    match value {
        10 if sum < 10 => sum * 10,
        100.. => sum.saturating_mul(value),
        _ => sum + value,
    }
}

/// Whether number words count something.
fn counts(text: &str, range: &Range<usize>, value: u64) -> bool {
    let is_wide = text.slice(range.clone()).contains(is_cjk);
    let has_unit = || {
        let after = head_chars(text.slice(range.end..), 16);
        number(&format!("{value}{after}")).is_some_and(|number| !number.unit.is_empty())
    };
    let is_ordinal = ORDINALS.iter().any(|lead| text.slice(..range.start).ends_with(lead));
    value > 1 && !is_wide || !is_ordinal && has_unit()
}

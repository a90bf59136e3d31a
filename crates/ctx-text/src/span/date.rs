//! Dates and times.

use std::sync::LazyLock;

use regex::Regex;

use crate::WordList;
use crate::pattern::pattern;

static MONTHS: WordList = WordList::new("months");

static TIME: LazyLock<Regex> = LazyLock::new(|| pattern("time"));
static MONTH_FIRST: LazyLock<Regex> = LazyLock::new(|| pattern("month_first"));
static DAY_FIRST: LazyLock<Regex> = LazyLock::new(|| pattern("day_first"));
static CHINESE_DAY: LazyLock<Regex> = LazyLock::new(|| pattern("chinese_day"));

/// Returns the length of a date at the beginning of `text`: `March 15, 2026`, `Mar. 3rd`, `June
/// 2026`, `15 March`, `3月15日`.
pub fn day_len(text: &str) -> Option<usize> {
    let found = match text.bytes().next()? {
        b'0'..=b'9' => match CHINESE_DAY.find(text) {
            Some(day) => return Some(day.end()),
            None => DAY_FIRST.captures(text)?,
        },
        b'A'..=b'Z' => {
            let letters = text.bytes().take_while(u8::is_ascii_alphabetic).count();
            is_month(text.get(..letters)?).then(|| MONTH_FIRST.captures(text))??
        }
        _ => return None,
    };
    let groups = found.iter().flatten().skip(1);
    let end = groups.map(|group| group.end()).max()?;
    is_month(found.get(1)?.as_str()).then_some(end)
}

/// Whether a word is `2026-03-15`, with or without a time, or `14:30`, `9:15am`.
#[must_use]
pub fn is_time(word: &str) -> bool {
    TIME.is_match(word)
}

/// Whether a word is the full or three-letter name of a month.
pub(crate) fn is_month(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    let is_start = |month: &&str| lower.len() == 3 && month.starts_with(&lower);
    lower == "sept" || MONTHS.iter().any(|month| *month == lower || is_start(month))
}

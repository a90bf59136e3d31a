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
    if let Some(day) = CHINESE_DAY.find(text) {
        return Some(day.end());
    }
    let found = MONTH_FIRST.captures(text).or_else(|| DAY_FIRST.captures(text))?;
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

//! Numbers and their units.

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::FixedState;
use regex::Regex;

use super::bounds::joins;
use crate::WordList;
use crate::fold::is_cjk;
use crate::pattern::pattern;

static NUMBER: LazyLock<Regex> = LazyLock::new(|| pattern("number"));

/// A parsed number.
#[derive(Clone, Debug, PartialEq)]
pub struct Number {
    /// Its length in bytes, unit included.
    pub(super) len: usize,
    /// The value without separators and trailing zeros; for a range, both ends.
    pub value: String,
    /// The canonical name of its unit; empty if there is none.
    pub unit: &'static str,
    /// Whether the unit only names what is counted.
    pub(super) is_count: bool,
}

/// Parses a number at the beginning of `text`: `1,500 ms`, `$5.20`, `10-20%`, `3 小时`.
pub fn number(text: &str) -> Option<Number> {
    let found = NUMBER.captures(text)?;
    let group = |nth| found.get(nth).map_or("", |group| group.as_str());
    let mut value = plain(group(2));
    if found.get(3).is_some() {
        value = format!("{value}-{}", plain(group(3)));
    }
    let at = found.get(0)?.end();
    let rest = text.get(at..)?;
    let currencies = [("$", "usd"), ("€", "eur"), ("£", "gbp"), ("¥", "cny"), ("￥", "cny")];
    if let Some((_, unit)) = currencies.into_iter().find(|(sign, _)| *sign == group(1)) {
        let len = at + magnitude(rest, &mut value);
        return Some(Number { len, value, unit, is_count: false });
    }
    if let Some((len, unit, is_count)) = unit(rest) {
        return Some(Number { len: at + len, value, unit, is_count });
    }
    let scaled = magnitude(rest, &mut value);
    if scaled > 0 {
        let after = text.get(at + scaled..)?;
        let (len, unit, _) = unit(after).unwrap_or((0, "", false));
        let unit = if unit.is_empty() { "k" } else { unit };
        return Some(Number { len: at + scaled + len, value, unit, is_count: false });
    }
    // `12abc` is not a number.
    let open = rest.chars().next().is_some_and(joins);
    (!open).then_some(Number { len: at, value, unit: "", is_count: false })
}

/// Returns a number without separators and without zeros at the end of its fraction.
fn plain(number: &str) -> String {
    let number = number.replace(',', "");
    if !number.contains('.') {
        return number;
    }
    number.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Parses `k`, `M`, `万`, and multiplies the value if it is a whole number.
fn magnitude(rest: &str, value: &mut String) -> usize {
    let Some(c) = rest.chars().next() else { return 0 };
    let zeros = match c {
        'k' | 'K' => 3,
        'm' | 'M' => 6,
        'b' | 'B' | '亿' => 9,
        '万' => 4,
        _ => return 0,
    };
    let len = c.len_utf8();
    let after = rest.get(len..).and_then(|rest| rest.chars().next());
    if !is_cjk(c) && after.is_some_and(joins) {
        return 0;
    }
    if value.contains('-') {
        value.push(c);
        return len;
    }
    let zeros = if c == '亿' { 8 } else { zeros };
    let (whole, fraction) = value.split_once('.').unwrap_or((value.as_str(), ""));
    if fraction.len() <= zeros {
        let pad = "0".repeat(zeros - fraction.len());
        let scaled = format!("{whole}{fraction}{pad}");
        let scaled = scaled.trim_start_matches('0');
        *value = if scaled.is_empty() { "0".to_owned() } else { scaled.to_owned() };
    }
    len
}

/// Parses the unit at the beginning of `rest`, optionally after a space or a hyphen.
fn unit(rest: &str) -> Option<(usize, &'static str, bool)> {
    let gap = rest.chars().take(2).take_while(|c| matches!(c, ' ' | '\n' | '\u{a0}')).count();
    let lead: usize = rest.chars().take(gap).map(char::len_utf8).sum();
    let lead = if gap == 0 && rest.starts_with('-') { 1 } else { lead };
    let text = rest.get(lead..)?;
    if text.starts_with('%') || text.starts_with('％') {
        return Some((lead + text.chars().next()?.len_utf8(), "%", false));
    }
    if text.starts_with(|c: char| !c.is_ascii())
        && let Some((sign, name, is_count)) = chinese(text)
    {
        return Some((lead + sign.len(), name, is_count));
    }
    let letters =
        text.bytes().take(16).take_while(|b| b.is_ascii_alphabetic() || *b == b'/').count();
    let micro = ["µs", "μs"].into_iter().find(|sign| text.starts_with(sign));
    if let Some(sign) = micro {
        return Some((lead + sign.len(), "us", false));
    }
    let word = text.get(..letters)?.trim_end_matches('/');
    let next = text.get(word.len()..)?.chars().next();
    if word.is_empty() || next.is_some_and(|c| c == '_' || c.is_ascii_digit()) {
        return None;
    }
    let (name, is_count) = english(word).or_else(|| {
        // `200/s` is a rate, `3 ms/op` is milliseconds.
        let (unit, _) = word.split_once('/')?;
        english(unit)
    })?;
    // A single letter after a space is more likely a word than a unit: `3 m`, `a 5 s`.
    if lead > 0 && word.len() == 1 && !matches!(word, "s" | "B") {
        return None;
    }
    Some((lead + word.len(), name, is_count))
}

/// Chinese units with their canonical names, and units that only count.
static MEASURES: WordList = WordList::new("units.measures");
static COUNTS: WordList = WordList::new("units.counts");

fn chinese(text: &str) -> Option<(&'static str, &'static str, bool)> {
    let found = |list: &WordList| list.pairs().find(|(sign, _)| text.starts_with(sign));
    let measure = found(&MEASURES).map(|(sign, name)| (sign, name, false));
    measure.or_else(|| found(&COUNTS).map(|(sign, name)| (sign, name, true)))
}

/// English units with their canonical names, and those that only count. Megabits and megabytes
/// differ only in case, so each spelling is listed.
static WORDS: WordList = WordList::new("units.words");
static COUNTED: WordList = WordList::new("units.counted");

/// Returns the canonical name of a unit, and whether it only counts.
fn english(word: &str) -> Option<(&'static str, bool)> {
    static UNITS: LazyLock<HashMap<&str, (&str, bool), FixedState>> = LazyLock::new(|| {
        let measures = WORDS.pairs().map(|(word, unit)| (word, (unit, false)));
        measures.chain(COUNTED.pairs().map(|(word, unit)| (word, (unit, true)))).collect()
    });
    UNITS.get(word).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_units_are_read_however_they_are_written() {
        for (text, value, unit, len) in [
            ("500ms", "500", "ms", 5),
            ("500 ms,", "500", "ms", 6),
            ("1,500 ms", "1500", "ms", 8),
            ("30-second timeout", "30", "s", 9),
            ("2.50 GB", "2.5", "gb", 7),
            ("$5.20 a month", "5.2", "usd", 5),
            ("10-20%", "10-20", "%", 6),
            ("200k tokens", "200000", "token", 11),
            ("1.5M", "1500000", "k", 4),
            ("3 小时", "3", "h", 8),
            ("3万条", "30000", "row", 7),
            ("42", "42", "", 2),
            ("5 minutes", "5", "min", 9),
        ] {
            let number = number(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(
                (number.value.as_str(), number.unit, number.len),
                (value, unit, len),
                "{text}"
            );
        }
        for text in ["12abc", "abc", "", "$", "1_000"] {
            assert_eq!(number(text), None, "{text}");
        }
    }
}

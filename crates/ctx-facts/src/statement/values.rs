//! The values in a statement.

use std::ops::Range;

use ctx_core::text::{Slice, head_chars};
use ctx_text::{SpanKind, WordList, day_len, is_cjk, is_name, normal_form, number, spans};

use super::{DONE, GENERIC, OPEN, SLOTS, Statement, blank, content_word, find, words};

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Value {
    pub(super) kind: ValueKind,
    /// In normal form.
    pub(super) text: String,
    /// Whether the statement says that it no longer holds: "not Redis any more", "from 18 to 20".
    pub(super) is_past: bool,
}

/// The kind of a value. Only values of one kind replace each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    /// A number with the dimension of its unit, or its unit; empty without one.
    Number(&'static str),
    Date,
    Time,
    Location,
    Id,
    Name,
    /// A word of a closed list, by its index in [`CHOICES`].
    Choice(usize),
    /// Rivals of which one is used at a time, by their group.
    Rival(usize),
}

/// The maximum length of a value after a word such as 到, in characters.
const LED: usize = 8;

/// Preferences of which one holds at a time: their values are known. With the words that must stand
/// beside them: "answer in short" is about style, "a short timeout" is not.
static CHOICES: [(WordList, Option<&WordList>); 8] = [
    (WordList::new("values.style"), Some(&ANSWERS)),
    (WordList::new("values.units"), None),
    (WordList::new("values.time_zones"), Some(&TIMES)),
    (WordList::new("values.languages"), Some(&ANSWERS)),
    (WordList::new("values.weekdays"), None),
    (WordList::new("values.currencies"), None),
    (WordList::new("values.themes"), Some(&THEMES)),
    (WordList::new("values.switches"), None),
];

/// The first lists: a user has one of these for the whole session.
pub(super) const PREFERENCES: usize = 4;

static ANSWERS: WordList = WordList::new("values.of_answers");
static THEMES: WordList = WordList::new("values.of_themes");
static TIMES: WordList = WordList::new("values.of_times");
/// Groups of tools of which a project uses one.
static RIVALS: WordList = WordList::new("rivals");
/// Words before a value that no longer holds: "from", "instead of", "不再".
static PAST: WordList = WordList::new("slots.past");
/// Those that need one of [`REACHES`] later: "from 18 to 20".
static LEAVES: WordList = WordList::new("slots.leaves");
static REACHES: WordList = WordList::new("slots.reaches");
/// Words after a value that no longer holds: "is out", "was replaced".
static PASSED: WordList = WordList::new("slots.passed");
/// Words that a value follows, in a language without capitals: "部署到阿里云".
static LEADS: WordList = WordList::new("slots.leads");
static NUMBER_WORDS: WordList = WordList::new("slots.number_words");

impl Statement {
    fn value(&mut self, kind: ValueKind, value: &str, rest: &str, range: &Range<usize>) {
        let is_past = is_past(rest, range);
        self.values.push(Value { kind, text: value.to_owned(), is_past });
    }

    /// Takes paths, numbers and ids out of the text.
    pub(super) fn spans(&mut self, text: &str, rest: &mut String) {
        for span in spans(text) {
            // Of an id with its label ("端口是 8080", "端口是3000"), the label names the subject.
            let last = |c: char| c.is_whitespace() || is_cjk(c) && span.kind == SpanKind::Id;
            let label = span.text.trim_end().rfind(last);
            let label = label.map_or(0, |at| {
                at + span.text.slice(at..).chars().next().map_or(1, char::len_utf8)
            });
            let value = span.text.slice(label..);
            let kind = match span.kind {
                SpanKind::Number => {
                    let (kind, normal) = quantity(span.text);
                    self.value(kind, &normal, rest, &span.range);
                    self.written.extend(from_digit(span.text));
                    blank(rest, &span.range);
                    continue;
                }
                SpanKind::Path | SpanKind::Url => ValueKind::Location,
                SpanKind::Id if is_version(value) => ValueKind::Number(""),
                SpanKind::Id => ValueKind::Id,
                SpanKind::ErrorCode | SpanKind::CodeName => continue,
            };
            let range = span.range.start + label..span.range.end;
            let normal = normal_form(span.kind, value).text().to_owned();
            self.value(kind, &normal, rest, &range);
            self.written.extend(from_digit(value));
            blank(rest, &range);
        }
    }

    /// Takes times of day out of the text: "9:15".
    pub(super) fn times(&mut self, rest: &mut String) {
        for range in words(rest).collect::<Vec<_>>() {
            let tail = rest.slice(range.end..);
            let minutes =
                tail.strip_prefix(':').map(|tail| head_chars(tail, 2)).unwrap_or_default();
            let is_number =
                |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            if !is_number(rest.slice(range.clone())) || minutes.len() < 2 || !is_number(minutes) {
                continue;
            }
            let range = range.start..range.end + 1 + minutes.len();
            let value = rest.slice(range.clone()).to_owned();
            self.value(ValueKind::Time, &value, rest, &range);
            blank(rest, &range);
        }
    }

    /// Takes names and plain numbers out of the text: capitalised words after the first one.
    pub(super) fn names(&mut self, rest: &mut String) {
        let is_wide = rest.contains(is_cjk);
        let mut begins = true;
        let mut name_end = None;
        for range in words(rest).collect::<Vec<_>>() {
            let word = rest.slice(range.clone()).to_owned();
            let lower = word.to_lowercase();
            let rival = rival(&lower);
            // "Tomasz Wilk reviews this": the first word is a name before another one.
            let is_named = |text: &str| text.split(' ').next().is_some_and(is_name);
            let starts_upper = |text: &str| text.starts_with(|c: char| c.is_uppercase());
            let is_proper = starts_upper(&word)
                && (!begins
                    || word.chars().nth(1).is_some_and(|c| !c.is_lowercase())
                    || rest.slice(range.end..).strip_prefix(' ').is_some_and(is_named))
                || is_wide && word.starts_with(|c: char| c.is_ascii_alphabetic())
                || word.contains(['_', '-']) && word.bytes().any(|b| b.is_ascii_digit());
            let bare = lower.strip_prefix('v').unwrap_or(&lower);
            let is_number = !bare.is_empty() && bare.bytes().all(|b| b.is_ascii_digit());
            // "FACT:" and "Update:" are labels.
            let is_label = rest.slice(range.end..).starts_with([':', '：']);
            begins = is_label || rest.slice(range.end..).trim_start().starts_with(['.', '!', '?']);
            if is_label || !(is_proper || is_number || rival.is_some()) {
                continue;
            }
            // The capital "A" inside of a sentence is a name: "service A".
            let is_generic = GENERIC.contains(&lower.as_str()) && word != "A";
            if is_generic || choice(&lower).is_some() {
                continue;
            }
            if is_number && let Some(all) = of_all(rest.slice(range.end..)) {
                let range = range.start..range.end + all;
                self.value(ValueKind::Number("of"), &lower, rest, &range);
                self.written.push(lower);
                blank(rest, &range);
                continue;
            }
            if is_number && let Some(noun) = numbered(rest, range.start) {
                self.specified.push((noun, content_word(bare).unwrap_or_default()));
                blank(rest, &range);
                continue;
            }
            let kind = match rival {
                Some(group) => ValueKind::Rival(group),
                None if is_number => ValueKind::Number(""),
                None => ValueKind::Name,
            };
            self.written.extend(from_digit(&word).filter(|_| is_number));
            // "Ines Okafor" is one name.
            match self.values.last_mut().filter(|_| name_end == Some(range.start)) {
                Some(name) if kind == ValueKind::Name => {
                    name.text.push(' ');
                    name.text.push_str(&lower);
                }
                _ if is_number => self.value(kind, bare, rest, &range),
                _ => self.value(kind, &lower, rest, &range),
            }
            name_end = (kind == ValueKind::Name).then_some(range.end + 1);
            blank(rest, &range);
        }
    }

    /// Takes what follows a word such as 到 out of the text, up to the end of the clause.
    pub(super) fn led_names(&mut self, rest: &mut String) {
        let mut status = OPEN.iter().chain(DONE.iter());
        if !self.values.is_empty()
            || !rest.contains(is_cjk)
            || status.any(|words| find(rest, words).is_some())
        {
            return;
        }
        let found = LEADS.iter().filter(|lead| lead.contains(is_cjk)).filter_map(|lead| {
            let at = rest.rfind(lead)?;
            Some(at + lead.len())
        });
        let Some(start) = found.max() else { return };
        let tail = rest.slice(start..);
        let len = tail.find(|c: char| !c.is_alphanumeric()).unwrap_or(tail.len());
        let slots = SLOTS.iter().flat_map(|slot| slot.iter());
        let len = slots.filter_map(|word| tail.find(word)).fold(len, usize::min);
        let range = start..start + tail.slice(..len).trim_end_matches('了').len();
        if (2..=LED).contains(&rest.slice(range.clone()).chars().count()) {
            let value = rest.slice(range.clone()).to_owned();
            self.value(ValueKind::Name, &value, rest, &range);
            blank(rest, &range);
        }
    }

    /// Takes words of closed lists, and numbers in words, out of a lower-case text.
    pub(super) fn choices(&mut self, rest: &mut String) {
        let whole = rest.clone();
        let mut number = String::new();
        for range in words(rest).collect::<Vec<_>>() {
            let word = rest.slice(range.clone()).to_owned();
            if let Some(list) = choice(&word) {
                if is_about(&whole, list) {
                    self.value(ValueKind::Choice(list), &word, rest, &range);
                }
            } else if NUMBER_WORDS.contains(&word.as_str()) {
                number.push_str(&word);
                number.push(' ');
            } else {
                continue;
            }
            blank(rest, &range);
        }
        for (at, (list, _)) in CHOICES.iter().enumerate() {
            for word in list.iter().filter(|word| word.contains(is_cjk)) {
                let Some(range) = find(rest, word).filter(|_| is_about(&whole, at)) else {
                    continue;
                };
                self.value(ValueKind::Choice(at), word, rest, &range);
                blank(rest, &range);
            }
        }
        if !number.is_empty() {
            self.values.push(Value { kind: ValueKind::Number(""), text: number, is_past: false });
        }
    }

    /// Whether it has a value that can be replaced.
    #[must_use]
    pub fn has_value(&self) -> bool {
        !self.values.is_empty()
    }
}

/// Returns the kind and the normal form of a number: of a quantity of time or bytes, its value in
/// the smallest unit, so that "2 minutes" is "120 s".
fn quantity(text: &str) -> (ValueKind, String) {
    let normal = || normal_form(SpanKind::Number, text).text().to_owned();
    let Some(number) = number(text).filter(|_| day_len(text).is_none()) else {
        return (ValueKind::Date, normal());
    };
    let scale = SCALES.iter().find_map(|row| {
        let (unit, scale) = row.split_once(' ')?;
        scale.split_once(' ').filter(|_| unit == number.unit)
    });
    let scaled = scale.and_then(|(dimension, factor)| {
        let value = number.value.parse::<f64>().ok()? * factor.parse::<f64>().ok()?;
        Some((ValueKind::Number(dimension), format!("{value} {dimension}")))
    });
    scaled.unwrap_or_else(|| (ValueKind::Number(number.unit), normal()))
}

/// Units with their dimension and their size in its smallest unit.
static SCALES: WordList = WordList::new("units.scales");

/// Whether the words beside a value say that it no longer holds.
fn is_past(text: &str, range: &Range<usize>) -> bool {
    let before = text.slice(..range.start);
    let start = before.char_indices().rev().nth(23).map_or(0, |(at, _)| at);
    let before = format!(" {}", before.slice(start..).trim_end().to_lowercase());
    let ends = |words: &str| {
        before.ends_with(words)
            && (words.contains(is_cjk) || before.slice(..before.len() - words.len()).ends_with(' '))
    };
    let after = head_chars(text.slice(range.end..), 24).trim_start().to_lowercase();
    let leaves = |words: &str| {
        !LEAVES.contains(&words) || REACHES.iter().any(|to| text.slice(range.end..).contains(to))
    };
    PAST.iter().any(|words| ends(words) && leaves(words))
        || PASSED.iter().any(|words| after.starts_with(words))
}

/// Nouns that are identified by their number: another number is another thing.
static NUMBERED: WordList = WordList::new("slots.numbered");

/// Returns the noun that a number at this position identifies: "phase 2".
fn numbered(text: &str, at: usize) -> Option<u64> {
    let before = text.slice(..at).strip_suffix(' ')?;
    let noun = before.rsplit(|c: char| !c.is_alphanumeric()).next()?.to_lowercase();
    NUMBERED.contains(&noun.as_str()).then(|| content_word(&noun))?
}

/// Returns the length of " of 6" after a number: "phase 2 of 6" is a progress, not a phase by its
/// number.
fn of_all(after: &str) -> Option<usize> {
    let all = after.strip_prefix(" of ")?;
    let digits = all.len() - all.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    (digits > 0).then_some(after.len() - all.len() + digits)
}

/// Whether a value is a plain number or a version: "20", "v20", "3.0.0".
fn is_version(value: &str) -> bool {
    let value = value.strip_prefix('v').unwrap_or(value);
    value.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

fn from_digit(value: &str) -> Option<String> {
    let at = value.find(|c: char| c.is_ascii_digit())?;
    value.get(at..).map(str::to_owned)
}

fn choice(word: &str) -> Option<usize> {
    CHOICES.iter().position(|(list, _)| list.contains(&word))
}

fn rival(word: &str) -> Option<usize> {
    RIVALS.iter().position(|group| group.split(' ').any(|name| name == word))
}

/// Whether a lower-case text is about the preference.
fn is_about(text: &str, list: usize) -> bool {
    let about = CHOICES.get(list).and_then(|(_, about)| *about);
    about.is_none_or(|about| about.iter().any(|words| find(text, words).is_some()))
}

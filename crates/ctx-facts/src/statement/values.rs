//! The values in a statement.

use std::ops::Range;

use ctx_core::text::Slice;
use ctx_text::{SpanKind, WordList, day_len, is_cjk, is_name, is_time, normal_form, number, spans};

use super::cues::Cue;
use super::{Statement, blank, words};

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Value {
    pub(super) kind: ValueKind,
    /// In normal form.
    pub(super) text: String,
    /// Its place in the statement.
    pub(super) range: Range<usize>,
    /// Whether the statement says that it no longer holds: "not Redis any more", "from 18 to 20".
    pub(super) is_past: bool,
}

/// The kind of a value. Only values of one kind replace each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ValueKind {
    /// A number with the dimension of its unit, or its unit; empty without one.
    Number(&'static str),
    Date,
    Time,
    Location,
    Id,
    Name,
    /// What follows a word such as 到, in a language without capitals.
    Led,
    /// A word of a closed list, by its index in the lists of [`Cue::Choice`].
    Choice(usize),
    /// Rivals of which one is used at a time, by their group.
    Rival(usize),
}

impl ValueKind {
    /// The unit of a number; `None` for what is none.
    pub(super) fn unit(self) -> Option<&'static str> {
        match self {
            Self::Number(unit) => Some(unit),
            Self::Date => Some("date"),
            Self::Time => Some("time"),
            _ => None,
        }
    }
}

/// The maximum length of a value after a word such as 到, in characters.
const LED: usize = 8;

/// The first lists: a user has one of these for the whole session.
pub(super) const PREFERENCES: usize = 3;

/// Groups of tools of which a project uses one.
static RIVALS: WordList = WordList::new("rivals");
impl Statement {
    /// Takes a value out of the text.
    fn value(&mut self, kind: ValueKind, value: &str, rest: &mut String, range: Range<usize>) {
        blank(rest, &range);
        self.values.push(Value { kind, text: value.to_owned(), range, is_past: false });
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
                SpanKind::Number | SpanKind::Id if numbered(rest, &span.range) => continue,
                SpanKind::Number => {
                    let (kind, normal) = quantity(span.text);
                    self.value(kind, &normal, rest, span.range);
                    self.written.extend(from_digit(span.text));
                    continue;
                }
                SpanKind::Path | SpanKind::Url => ValueKind::Location,
                SpanKind::Id if is_version(value) => ValueKind::Number(""),
                SpanKind::Id => ValueKind::Id,
                SpanKind::ErrorCode | SpanKind::CodeName => continue,
            };
            let range = span.range.start + label..span.range.end;
            let normal = normal_form(span.kind, value).text().to_owned();
            self.value(kind, &normal, rest, range);
            self.written.extend(from_digit(value));
        }
    }

    /// Takes names and plain numbers out of the text: capitalised words after the first one.
    pub(super) fn names(&mut self, rest: &mut String, cues: &[(Cue, Range<usize>)]) {
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
            let is_generic =
                |cue: Cue| cue == Cue::Generic && word != "A" || matches!(cue, Cue::Choice(_));
            if cues.iter().any(|(cue, place)| *place == range && is_generic(*cue)) {
                continue;
            }
            if is_number && let Some(all) = of_all(rest.slice(range.end..)) {
                self.value(ValueKind::Number("of"), &lower, rest, range.start..range.end + all);
                self.written.push(lower);
                continue;
            }
            if is_number && numbered(rest, &range) {
                continue;
            }
            let kind = match rival {
                Some(group) => ValueKind::Rival(group),
                None if is_number => ValueKind::Number(""),
                None => ValueKind::Name,
            };
            self.written.extend(from_digit(&word).filter(|_| is_number));
            let end = (kind == ValueKind::Name).then_some(range.end + 1);
            // "Ines Okafor" is one name.
            match self.values.last_mut().filter(|_| name_end == Some(range.start)) {
                Some(name) if kind == ValueKind::Name => {
                    name.text.push(' ');
                    name.text.push_str(&lower);
                    name.range.end = range.end;
                    blank(rest, &range);
                }
                _ if is_number => self.value(kind, bare, rest, range),
                _ => self.value(kind, &lower, rest, range),
            }
            name_end = end;
        }
    }

    /// Takes what follows a word such as 到 out of the text, up to the end of the clause.
    pub(super) fn led_names(&mut self, rest: &mut String, cues: &[(Cue, Range<usize>)]) {
        let is_status = |(cue, _): &(Cue, _)| matches!(cue, Cue::Open | Cue::Done);
        if !self.values.is_empty() || cues.iter().any(is_status) {
            return;
        }
        let leads = cues.iter().filter(|(cue, _)| *cue == Cue::Lead);
        let Some(start) = leads.map(|(_, range)| range.end).max() else { return };
        let tail = rest.slice(start..);
        let len = tail.find(|c: char| !c.is_alphanumeric()).unwrap_or(tail.len());
        let slots =
            cues.iter().filter(|(cue, range)| matches!(cue, Cue::Slot(_)) && range.start >= start);
        let len = slots.map(|(_, range)| range.start - start).fold(len, usize::min);
        let range = start..start + tail.slice(..len).trim_end_matches('了').len();
        if (2..=LED).contains(&rest.slice(range.clone()).chars().count()) {
            let value = rest.slice(range.clone()).to_owned();
            self.value(ValueKind::Led, &value, rest, range);
        }
    }

    /// Takes preferences out of a lower-case text.
    pub(super) fn choices(&mut self, rest: &mut String, cues: &[(Cue, Range<usize>)]) {
        for (cue, range) in cues {
            let Cue::Choice(list) = *cue else { continue };
            let about = match list {
                // The style and the language are those of answers.
                0 | 2 => Some(0),
                5 => Some(list),
                _ => None,
            };
            let is_about = |about| cues.iter().any(|(cue, _)| *cue == Cue::About(about));
            if about.is_none_or(is_about) {
                let word = rest.slice(range.clone()).to_owned();
                self.value(ValueKind::Choice(list), &word, rest, range.clone());
            }
            blank(rest, range);
        }
    }

    /// Whether it has a value that can be replaced.
    pub fn has_value(&self) -> bool {
        !self.values.is_empty()
    }
}

/// Returns the kind and the normal form of a number, a date or a time: of a quantity of time or bytes, its value in
/// the smallest unit, so that "2 minutes" is "120 s".
fn quantity(text: &str) -> (ValueKind, String) {
    let normal = || normal_form(SpanKind::Number, text).text().to_owned();
    if is_time(text) && !text.contains(['-', '/']) {
        return (ValueKind::Time, normal());
    }
    let is_day = day_len(text).is_some() || is_time(text);
    let Some(number) = number(text).filter(|_| !is_day) else {
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

/// Nouns that are identified by their number: another number is another thing.
static NUMBERED: WordList = WordList::new("slots.numbered");

/// Whether a number identifies the noun beside it: "phase 2", "3 号".
fn numbered(text: &str, range: &Range<usize>) -> bool {
    let before = text.slice(..range.start).trim_end();
    let noun = before.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let after = text.slice(range.end..).trim_start();
    NUMBERED.contains(&noun.to_lowercase())
        || NUMBERED.iter().any(|noun| noun.contains(is_cjk) && after.starts_with(noun))
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

fn rival(word: &str) -> Option<usize> {
    RIVALS.iter().position(|group| group.split(' ').any(|name| name == word))
}

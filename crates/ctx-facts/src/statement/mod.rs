//! What a statement is about, and which values it gives.

mod cues;
mod digits;
mod parts;
mod relation;
mod values;

use std::collections::HashSet;
use std::ops::Range;

use ctx_core::Chars;
use ctx_core::text::head;
use ctx_text::{Gist, gist, is_cjk, is_courtesy, is_step};

use cues::{Cue, cues};
use parts::Part;
use values::Value;

pub use relation::{Comparison, Feature};

/// A statement, parsed for comparison with others.
#[derive(Clone, Debug, Default)]
pub struct Statement {
    /// All content words.
    pub(crate) gist: Gist,
    /// The content words that name the subject, sorted.
    subject: Vec<u64>,
    /// The words of the subject and the values, in their order.
    parts: Vec<Part>,
    values: Vec<Value>,
    /// The values that contain digits, as written from their first digit on.
    written: Vec<String>,
    /// The key that it gives a value: `LOG_LEVEL=info`.
    key: Option<String>,
    /// The cues that stand outside its values.
    cues: Vec<Cue>,
    /// The slots it fills, as bits.
    slots: u32,
    /// Whether it says that something is done, or is not.
    status: Option<bool>,
    /// Whether it asks.
    asks: bool,
    /// Whether it names a task: "fix the login".
    is_task: bool,
    /// Whether it consists of clauses: a new value often comes with its reason.
    has_clauses: bool,
}

/// The length of a statement that is compared.
const LONGEST: Chars = Chars(400);

/// The first slots: a project has only one of these, whatever it is called.
const UNIQUE: u32 = 0b111;

impl Statement {
    /// Parses a statement.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let text = &*digits::digits(head(text, LONGEST));
        let lower = lowered(text);
        let mut out = Self { gist: gist(text), ..Self::default() };
        let mut cues = cues(&lower);
        let mut rest = text.to_owned();
        out.spans(text, &mut rest);
        out.names(&mut rest, &cues);
        out.led_names(&mut rest, &cues);
        cues.retain(|(_, range)| out.values.iter().all(|value| !overlap(&value.range, range)));
        out.flags(&cues);
        let mut rest = lowered(&rest);
        out.choices(&mut rest, &cues);
        let is_empty = |cue| matches!(cue, Cue::News | Cue::Open | Cue::Done | Cue::Generic);
        for (_, range) in cues.iter().filter(|(cue, _)| is_empty(*cue)) {
            blank(&mut rest, range);
        }
        out.subject = gist(&rest).words;
        out.read_parts(&lower, &rest, &cues);
        let mut seen = HashSet::new();
        out.values.retain(|value| seen.insert((value.kind, value.text.clone(), value.is_past)));
        let key = text.split_once('=').map(|(key, _)| key);
        out.key = key.filter(|key| !key.contains(char::is_whitespace)).map(str::to_owned);
        let clauses = text.split([',', ';', ':', '，', '；', '：']).filter(|it| !is_courtesy(it));
        out.is_task = is_step(text);
        out.has_clauses = clauses.count() > 1;
        out.asks = text.trim_end().ends_with(['?', '？']);
        out
    }

    fn flags(&mut self, cues: &[(Cue, Range<usize>)]) {
        self.cues = cues.iter().map(|(cue, _)| *cue).collect();
        for (cue, range) in cues {
            let is_open =
                || cues.iter().any(|(cue, open)| *cue == Cue::Open && overlap(open, range));
            match cue {
                Cue::Slot(slot) => self.slots |= 1 << slot,
                Cue::Open => self.status = Some(false),
                // "Not done" is open.
                Cue::Done if !is_open() => {
                    self.status.get_or_insert(true);
                }
                _ => {}
            }
        }
    }

    /// Whether it says that its value is new.
    pub(crate) fn is_news(&self) -> bool {
        self.has(Cue::News)
    }

    /// Whether it says that something is something.
    pub fn is_copular(&self) -> bool {
        self.has(Cue::Copula)
    }

    fn has(&self, cue: Cue) -> bool {
        self.cues.contains(&cue)
    }

    /// Whether it gives a new value without naming the thing: "现在改成 9090", "now it is 60s".
    pub(crate) fn only_renews(&self) -> bool {
        self.is_news()
            && self.subject.is_empty()
            && self.slots == 0
            && self.values.len() == 1
            && self.written.len() == 1
    }

    /// Returns the new and the old value, if each statement has one, written alike: 8080 and 9090,
    /// 30s and 60s.
    pub(crate) fn renews<'s>(&'s self, old: &'s Self) -> Option<(&'s str, &'s str)> {
        let shape =
            |value: &str| -> String { value.chars().filter(|c| !c.is_ascii_digit()).collect() };
        match (self.written.as_slice(), old.written.as_slice()) {
            ([new], [was]) if new != was && shape(new) == shape(was) => Some((new, was)),
            _ => None,
        }
    }
}

/// Returns a word as a gist has it; `None` for a stop word.
fn content_word(word: &str) -> Option<u64> {
    gist(word).words.first().copied()
}

/// Returns the words of a text: runs of letters and digits with what joins them inside, and single
/// Chinese characters.
fn words(text: &str) -> impl Iterator<Item = Range<usize>> {
    let is_part = |c: char| c.is_alphanumeric() && !is_cjk(c) || matches!(c, '-' | '_' | '\'');
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + text.get(at..)?.find(char::is_alphanumeric)?;
        let rest = text.get(start..)?;
        let first = rest.chars().next().filter(|c| is_cjk(*c)).map(char::len_utf8);
        let len = first.or_else(|| rest.find(|c: char| !is_part(c))).unwrap_or(rest.len());
        at = start + len;
        let word = rest.get(..len)?.trim_end_matches(['-', '_', '\'']);
        Some(start..start + word.len())
    })
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

/// Replaces a part of a text by spaces.
fn blank(text: &mut String, range: &Range<usize>) {
    if text.get(range.clone()).is_some() {
        text.replace_range(range.clone(), &" ".repeat(range.len()));
    }
}

/// Returns a text in lower case, with every character at its place.
fn lowered(text: &str) -> String {
    let lower = |c: char| {
        let mut small = c.to_lowercase();
        small.next().filter(|l| small.next().is_none() && l.len_utf8() == c.len_utf8()).unwrap_or(c)
    };
    text.chars().map(lower).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_value_is_compared_once() {
        let values = |text: &str| -> Vec<String> {
            Statement::of(text).values.into_iter().map(|value| value.text).collect()
        };
        assert_eq!(values("the ports 80 and 90 and 80"), ["80", "90"]);
        assert_eq!(values(&"m 7 ".repeat(50)), ["7"]);
    }
}

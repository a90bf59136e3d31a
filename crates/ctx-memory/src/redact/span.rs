//! What was found in a text, and the text without it.

use std::borrow::Cow;
use std::ops::Range;

use super::Redacted;

/// Every marker begins so.
pub(super) const MARKER: &str = "[redacted:";

/// The nearest place at or before `at` where a character begins.
pub(crate) fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default()
}

/// The nearest place at or after `at` where a character begins.
pub(crate) fn ceil(text: &str, at: usize) -> usize {
    (at..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

/// How a secret was found. The sooner in this list, the more its name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum By {
    Form,
    Name,
    Looks,
}

/// What becomes of the line breaks in a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Breaks {
    Gone,
    Kept,
}

/// The places of secrets, and of what is known to be none.
#[derive(Debug, Default)]
pub(super) struct Spans<'t> {
    secrets: Vec<(Range<usize>, By, &'t str)>,
    /// Where long words are of no interest: the bodies of public keys and certificates.
    public: Vec<Range<usize>>,
    formed: usize,
}

impl<'t> Spans<'t> {
    pub(super) fn secret(&mut self, range: Range<usize>, by: By, name: &'t str) {
        if by == By::Form {
            self.formed = self.formed.max(range.end);
        }
        self.secrets.push((range, by, name));
    }

    pub(super) fn public(&mut self, range: Range<usize>) {
        self.public.push(range);
    }

    /// Where the last secret ends that was found by its form so far.
    pub(super) fn formed(&self) -> usize {
        self.formed
    }

    /// Puts them in order: of those that overlap one is made, with the name that says most.
    pub(super) fn sort(&mut self) {
        let mut found = std::mem::take(&mut self.secrets);
        found.sort_by_key(|(range, ..)| range.start);
        for (range, by, name) in found {
            match self.secrets.last_mut() {
                Some((last, how, named)) if range.start < last.end => {
                    last.end = last.end.max(range.end);
                    if by < *how {
                        *how = by;
                        *named = name;
                    }
                }
                _ => self.secrets.push((range, by, name)),
            }
        }
        self.public.sort_by_key(|range| range.start);
    }

    /// What is settled, in order, for one pass from left to right.
    pub(super) fn settled(&self) -> Vec<Range<usize>> {
        let secrets = self.secrets.iter().map(|(range, ..)| range.clone());
        let mut all: Vec<_> = secrets.chain(self.public.iter().cloned()).collect();
        all.sort_by_key(|range| range.start);
        all
    }

    /// The text with a marker for each secret.
    pub(super) fn apply(self, text: &str, breaks: Breaks) -> Redacted<'_> {
        if self.secrets.is_empty() {
            return Redacted { text: Cow::Borrowed(text), found: 0 };
        }
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        for (range, _, name) in &self.secrets {
            // Ranges are of whole characters; should one ever not be, its text is left out and
            // nothing panics.
            out.push_str(text.get(at..range.start).unwrap_or_default());
            out.push_str(MARKER);
            out.push_str(name);
            out.push(']');
            if breaks == Breaks::Kept {
                let secret = text.get(range.clone()).unwrap_or_default();
                out.extend(secret.chars().filter(|c| *c == '\n'));
            }
            at = range.end;
        }
        out.push_str(text.get(at..).unwrap_or_default());
        Redacted { text: Cow::Owned(out), found: self.secrets.len() }
    }
}

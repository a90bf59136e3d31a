//! The spans of secrets in a text, and their replacement.

use ctx_core::text::Slice;
use std::borrow::Cow;
use std::ops::Range;

use crate::Redacted;

/// The beginning of every marker.
pub(crate) const MARKER: &str = "[redacted:";

/// How a secret was found, the most specific first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum By {
    Form,
    Name,
    Entropy,
}

/// How to treat line breaks in a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Breaks {
    Removed,
    Kept,
}

/// The spans of secrets and of public data.
#[derive(Debug, Default)]
pub(crate) struct Spans<'t> {
    secrets: Vec<(Range<usize>, By, &'t str)>,
    /// Spans where long words are ignored: the bodies of public keys and certificates.
    public: Vec<Range<usize>>,
    formed: usize,
}

impl<'t> Spans<'t> {
    pub(crate) fn secret(&mut self, range: Range<usize>, by: By, name: &'t str) {
        if by == By::Form {
            self.formed = self.formed.max(range.end);
        }
        self.secrets.push((range, by, name));
    }

    pub(crate) fn public(&mut self, range: Range<usize>) {
        self.public.push(range);
    }

    /// Returns the end of the last secret found by its form so far.
    pub(crate) fn formed(&self) -> usize {
        self.formed
    }

    /// Sorts the spans and merges overlapping ones under the most specific name.
    pub(crate) fn sort(&mut self) {
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

    /// Returns all spans, sorted by start.
    pub(crate) fn settled(&self) -> Vec<Range<usize>> {
        let secrets = self.secrets.iter().map(|(range, ..)| range.clone());
        let mut all: Vec<_> = secrets.chain(self.public.iter().cloned()).collect();
        all.sort_by_key(|range| range.start);
        all
    }

    /// Replaces each secret by a marker.
    pub(crate) fn apply(self, text: &str, breaks: Breaks) -> Redacted<'_> {
        if self.secrets.is_empty() {
            return Redacted { text: Cow::Borrowed(text), found: 0 };
        }
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        for (range, _, name) in &self.secrets {
            // Ranges are on character boundaries; an invalid one drops its text instead of
            // panicking.
            out.push_str(text.slice(at..range.start));
            out.push_str(MARKER);
            out.push_str(name);
            out.push(']');
            if breaks == Breaks::Kept {
                let secret = text.get(range.clone()).unwrap_or_default();
                out.extend(secret.chars().filter(|c| *c == '\n'));
            }
            at = range.end;
        }
        out.push_str(text.slice(at..));
        Redacted { text: Cow::Owned(out), found: self.secrets.len() }
    }
}

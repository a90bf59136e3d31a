//! Which texts were drawn from messages that go.

use std::cell::RefCell;
use std::collections::HashSet;

use ctx_memory::text::{TermKind, Terms};

/// Shorter words say too little to tell where a line comes from.
const SHORTEST: usize = 3;

/// A text that is looked for, whatever the case of its letters and however it is broken into lines.
#[derive(Clone, Debug)]
pub(super) struct Needle(String);

impl Needle {
    pub(super) fn new(text: &str) -> Self {
        Self(folded(text))
    }

    pub(super) fn is_in(&self, text: &str) -> bool {
        !self.0.is_empty() && folded(text).contains(&self.0)
    }
}

fn folded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.extend(word.chars().flat_map(char::to_lowercase));
    }
    out
}

/// The words that of all messages only those say that go. A line of a summary that says one of them
/// was drawn from those.
#[derive(Default)]
pub(super) struct OnlyThere {
    words: HashSet<String>,
    terms: RefCell<Terms>,
}

impl OnlyThere {
    /// Learns what a message says that goes.
    pub(super) fn goes(&mut self, text: &str) {
        let words = &mut self.words;
        self.terms.get_mut().each(text, |term| {
            if is_telling(term.text, term.kind) && !words.contains(term.text) {
                words.insert(term.text.to_owned());
            }
        });
    }

    /// Learns what a message says that stays.
    pub(super) fn stays(&mut self, text: &str) {
        let words = &mut self.words;
        self.terms.get_mut().each(text, |term| {
            words.remove(term.text);
        });
    }

    /// Whether a text says what only those messages said.
    pub(super) fn are_in(&self, text: &str) -> bool {
        let mut found = false;
        if let Ok(mut terms) = self.terms.try_borrow_mut() {
            terms.each(text, |term| found |= self.words.contains(term.text));
        }
        found
    }
}

fn is_telling(word: &str, kind: TermKind) -> bool {
    kind != TermKind::Stop && (word.chars().count() >= SHORTEST || !word.is_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_what_was_forgotten_by_words_that_nobody_else_said() {
        let mut only = OnlyThere::default();
        only.goes("the billing port is 4711, and the 数据库 is new");
        only.stays("which port do we use for billing?");
        for line in ["- Ports: 4711", "uses 数据库"] {
            assert!(only.are_in(line), "{line}");
        }
        for line in ["- the billing port", "", "and the"] {
            assert!(!only.are_in(line), "{line}");
        }
    }

    #[test]
    fn a_needle_is_found_whatever_its_case_and_its_line_breaks() {
        let needle = Needle::new("Red  Heron");
        assert!(needle.is_in("a RED\n heron flew") && !needle.is_in("red herring"));
        assert!(!Needle::new(" \n").is_in("anything"));
    }
}

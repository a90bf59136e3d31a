//! The words and values of a statement in their order, and where two statements differ.

use std::hash::BuildHasher;
use std::ops::Range;

use ctx_core::text::Slice;
use ctx_text::{WordList, is_cjk};
use foldhash::fast::FixedState;

use super::cues::Cue;
use super::{Statement, content_word, overlap, words};

/// A word of the subject, or a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) word: u64,
    /// The word after it; 0 for a stop word.
    next: u64,
    /// The indices of its first and its last word in the statement.
    first: usize,
    last: usize,
    is_value: bool,
    /// Whether the statement says that it no longer holds: "not Redis any more", "from 18 to 20".
    pub(super) is_past: bool,
}

/// Chinese characters that say nothing alone: 的, 是, 在.
static PARTICLES: WordList = WordList::new("slots.particles");

impl Statement {
    /// Reads the parts, and which of them no longer hold. `rest` is the lower-case text without its
    /// values and its empty words.
    pub(super) fn read_parts(&mut self, lower: &str, rest: &str, cues: &[(Cue, Range<usize>)]) {
        let words: Vec<Range<usize>> = words(lower).collect();
        let past = past_words(&words, lower, cues);
        let text_at = |at: usize| words.get(at).map_or("", |range| lower.slice(range.clone()));
        let next_of = |at: usize| content_word(text_at(at + 1)).unwrap_or_default();
        let mut last_value = None;
        for (at, range) in words.iter().enumerate() {
            let is_past = past.contains(&at);
            let value = self.values.iter().position(|value| overlap(&value.range, range));
            let word = match value.and_then(|value| self.values.get_mut(value)) {
                Some(value) => {
                    value.is_past |= is_past;
                    Some(hash(&value.text))
                }
                None => word_of(rest.slice(range.clone())),
            };
            let Some(word) = word else { continue };
            let goes_on = value.is_some() && std::mem::replace(&mut last_value, value) == value;
            match self.parts.last_mut().filter(|_| goes_on) {
                Some(part) => {
                    (part.last, part.next) = (at, next_of(at));
                    part.is_past |= is_past;
                }
                None => self.parts.push(Part {
                    word,
                    next: next_of(at),
                    first: at,
                    last: at,
                    is_value: value.is_some(),
                    is_past,
                }),
            }
        }
    }

    /// Whether one of the parts is this word.
    pub(super) fn has_part(&self, word: u64) -> bool {
        self.parts.iter().any(|part| part.word == word)
    }

    /// Returns the parts that the other statement lacks, and that hold.
    pub(super) fn only_here<'s>(&'s self, other: &'s Self) -> impl Iterator<Item = &'s Part> {
        self.parts.iter().filter(|part| !part.is_past && !other.has_part(part.word))
    }

    /// Returns the number of places at which it has parts that the other statement lacks.
    pub(super) fn runs(&self, other: &Self) -> usize {
        let mut end = None;
        let starts = self.only_here(other).filter(|part| {
            let goes_on = end == Some(part.first);
            end = Some(part.last + 1);
            !goes_on
        });
        starts.count()
    }
}

impl Part {
    /// Whether both specify the same word: "the staging port", "the production port".
    pub(super) fn contrasts_with(&self, other: &Self) -> bool {
        self.next != 0 && self.next == other.next && !self.is_value
    }
}

fn word_of(text: &str) -> Option<u64> {
    let is_particle = text.starts_with(is_cjk) && PARTICLES.contains(text);
    content_word(text).filter(|_| !is_particle)
}

/// Returns the indices of the words that the statement says no longer hold.
fn past_words(words: &[Range<usize>], lower: &str, cues: &[(Cue, Range<usize>)]) -> Vec<usize> {
    let breaks = |c: char| c.is_ascii_punctuation() && !matches!(c, '"' | '`' | '\'');
    let next = |end: usize| {
        let at = words.iter().position(|word| word.start >= end)?;
        (!lower.slice(end..words[at].start).contains(breaks)).then_some(at)
    };
    let reaches = |end: usize| cues.iter().any(|(cue, r)| *cue == Cue::Reaches && r.start >= end);
    let past = cues.iter().filter_map(|(cue, range)| match cue {
        Cue::Past => next(range.end),
        Cue::Leaves if reaches(range.end) => next(range.end),
        Cue::Passed => words.iter().rposition(|word| word.end <= range.start),
        _ => None,
    });
    past.collect()
}

fn hash(text: &str) -> u64 {
    FixedState::with_seed(1).hash_one(text)
}

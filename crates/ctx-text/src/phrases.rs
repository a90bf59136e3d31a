//! Finds the phrases of lists in a text, all in one pass.

use std::ops::Range;

use aho_corasick::AhoCorasick;
use ctx_core::text::Slice;

use crate::fold::is_cjk;

/// Phrases in lower case, each with its meaning.
#[derive(Debug)]
pub struct Phrases<T> {
    finder: AhoCorasick,
    meanings: Vec<T>,
}

impl<T: Copy> Phrases<T> {
    /// Indexes phrases; `None` if they are too many.
    pub fn new<'w>(phrases: impl IntoIterator<Item = (T, &'w str)>) -> Option<Self> {
        let (meanings, words): (Vec<T>, Vec<&str>) = phrases.into_iter().unzip();
        Some(Self { finder: AhoCorasick::new(words).ok()?, meanings })
    }

    /// Returns the phrases in a text in lower case, with their places. A Latin word counts only as a
    /// whole word.
    pub fn find(&self, text: &str) -> Vec<(T, Range<usize>)> {
        let found = self.finder.find_overlapping_iter(text);
        let whole = found.filter(|found| is_whole(text, found.range()));
        whole
            .filter_map(|it| Some((*self.meanings.get(it.pattern().as_usize())?, it.range())))
            .collect()
    }
}

/// Whether a match in letters is a whole word, unlike "go" in "explain.go".
fn is_whole(text: &str, range: Range<usize>) -> bool {
    let word = |c: char| (c.is_alphanumeric() && !is_cjk(c)) || matches!(c, '_' | '-' | '/');
    let cue = text.slice(range.clone());
    let (head, rest) = (text.slice(..range.start), text.slice(range.end..));
    let before = head.strip_suffix('.').unwrap_or(head).chars().next_back();
    let suffix = rest.strip_prefix('.').filter(|suffix| suffix.starts_with(char::is_alphanumeric));
    let after = suffix.unwrap_or(rest).chars().next();
    // `n't` is always attached to a word.
    let opens = cue.starts_with(word) && !cue.starts_with("n't");
    let closes = cue.ends_with(word);
    let goes_on = |c: char| word(c) || c == '\'';
    !(opens && before.is_some_and(word) || closes && after.is_some_and(goes_on))
}

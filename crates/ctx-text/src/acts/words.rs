//! The words that classify a sentence, all found in one pass.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use crate::WordList;

/// A list, by its index in [`LISTS`].
#[derive(Clone, Copy)]
pub(super) enum List {
    Assents,
    Fillers,
    Asks,
    Announces,
    Chatter,
    DoneFirst,
    Done,
    NotYet,
    Blocked,
    Decisions,
    Next,
    Findings,
    Demands,
    Strict,
    Causes,
    PutOff,
}

/// The lists, in the order of [`List`].
static LISTS: [WordList; 16] = [
    WordList::new("signals.assents"),
    WordList::new("signals.fillers"),
    WordList::new("signals.asks"),
    WordList::new("signals.announces"),
    WordList::new("signals.chatter"),
    WordList::new("signals.done_first"),
    WordList::new("signals.done"),
    WordList::new("signals.not_yet"),
    WordList::new("signals.blocked"),
    WordList::new("signals.decisions"),
    WordList::new("signals.next"),
    WordList::new("signals.findings"),
    WordList::new("signals.demands"),
    WordList::new("signals.strict"),
    WordList::new("signals.causes"),
    WordList::new("signals.put_off"),
];

struct Words {
    /// Each word with the lists that contain it, as bits.
    words: Vec<(&'static str, u32)>,
    finder: Option<AhoCorasick>,
}

static WORDS: LazyLock<Words> = LazyLock::new(|| {
    let mut lists_of: BTreeMap<&'static str, u32> = BTreeMap::new();
    for (at, list) in LISTS.iter().enumerate() {
        for word in list.iter() {
            *lists_of.entry(word).or_default() |= 1 << at;
        }
    }
    let words: Vec<(&'static str, u32)> = lists_of.into_iter().collect();
    let finder = AhoCorasick::new(words.iter().map(|(word, _)| word)).ok();
    Words { words, finder }
});

/// Whether a word is on a list.
pub(super) fn is_on(word: &str, list: List) -> bool {
    WORDS.words.iter().any(|(known, lists)| *known == word && lists & (1 << list as u32) != 0)
}

/// The words found in a text.
pub(super) struct Found {
    /// The start of each list's first word.
    first: [usize; LISTS.len()],
    /// For each list, the end of the word that ends first.
    ended: [usize; LISTS.len()],
    /// The lists with a word at the very beginning.
    opening: u32,
}

impl Found {
    /// Finds all words in a lower-case text. A Latin word counts only as a whole word. `start` is
    /// the start of the first word of the text.
    pub(super) fn of(lower: &str, start: usize) -> Self {
        let mut found =
            Self { first: [usize::MAX; LISTS.len()], ended: [usize::MAX; LISTS.len()], opening: 0 };
        let Some(finder) = &WORDS.finder else { return found };
        for hit in finder.find_overlapping_iter(lower) {
            let (word, lists) = WORDS.words[hit.pattern().as_usize()];
            if !stands_alone(lower, word, hit.start(), hit.end()) {
                continue;
            }
            if hit.start() == start {
                found.opening |= lists;
            }
            for at in (0..LISTS.len()).filter(|at| lists & (1 << at) != 0) {
                found.first[at] = found.first[at].min(hit.start());
                found.ended[at] = found.ended[at].min(hit.end());
            }
        }
        found
    }

    /// Whether the text contains a word of the list.
    pub(super) fn has(&self, list: List) -> bool {
        self.first[list as usize] != usize::MAX
    }

    /// Returns the start of the list's first word.
    pub(super) fn first(&self, list: List) -> Option<usize> {
        let at = self.first[list as usize];
        (at != usize::MAX).then_some(at)
    }

    /// Whether the text begins with a word of the list.
    pub(super) fn opens(&self, list: List) -> bool {
        self.opening & (1 << list as u32) != 0
    }

    /// Whether a word of `list` precedes the first of `other`.
    pub(super) fn precedes(&self, list: List, other: List) -> bool {
        self.ended[list as usize] <= self.first[other as usize]
    }
}

fn stands_alone(text: &str, word: &str, start: usize, end: usize) -> bool {
    let joins = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    // `n't` is always attached to a word.
    let opens = word.starts_with(|c: char| c.is_ascii_alphanumeric()) && !word.starts_with("n't");
    let closes = word.ends_with(|c: char| c.is_ascii_alphanumeric());
    let before = text.get(..start).and_then(|text| text.chars().next_back());
    let after = text.get(end..).and_then(|text| text.chars().next());
    !(opens && joins(before) || closes && joins(after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_is_known_and_has_words() {
        for (at, list) in LISTS.iter().enumerate() {
            let count = WORDS.words.iter().filter(|(_, lists)| lists & (1 << at) != 0).count();
            assert!(count > 3, "{list:?}");
        }
        assert!(
            WORDS.words.iter().all(|(word, lists)| *lists != 0 && *word == word.to_lowercase())
        );
        assert!(WORDS.finder.is_some());
    }

    #[test]
    fn latin_words_are_found_whole_and_chinese_ones_anywhere() {
        let found = Found::of("the redone login isn't 已修复", 0);
        assert!(!found.has(List::Next) && !found.opens(List::Done));
        assert!(found.has(List::Done) && found.has(List::NotYet));
        assert!(found.precedes(List::NotYet, List::Done));
        assert!(!Found::of("redone", 0).has(List::Done));
        assert!(Found::of("done, not yet", 0).opens(List::DoneFirst));
    }
}

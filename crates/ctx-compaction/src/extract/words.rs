//! The words that classify a sentence, all found in one pass.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

/// A list of `words.txt`, by its index in [`NAMES`].
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
    Praise,
    Causes,
    PutOff,
}

/// The names of the sections, in the order of [`List`].
const NAMES: [&str; 17] = [
    "assents",
    "fillers",
    "asks",
    "announces",
    "chatter",
    "done_first",
    "done",
    "not_yet",
    "blocked",
    "decisions",
    "next",
    "findings",
    "demands",
    "strict",
    "praise",
    "causes",
    "put_off",
];

struct Words {
    /// Each word with the lists that contain it, as bits.
    words: Vec<(&'static str, u32)>,
    finder: Option<AhoCorasick>,
}

static WORDS: LazyLock<Words> = LazyLock::new(|| {
    let mut words: Vec<(&'static str, u32)> = Vec::new();
    let mut list = 0u32;
    for line in include_str!("words.txt").lines().map(str::trim) {
        if line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            list = NAMES.iter().position(|known| *known == name).map_or(0, |at| 1 << at);
            continue;
        }
        for word in line.split('|').map(str::trim).filter(|word| !word.is_empty()) {
            match words.iter_mut().find(|(known, _)| *known == word) {
                Some((_, lists)) => *lists |= list,
                None => words.push((word, list)),
            }
        }
    }
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
    first: [usize; NAMES.len()],
    /// For each list, the end of the word that ends first.
    ended: [usize; NAMES.len()],
    /// The lists with a word at the very beginning.
    opening: u32,
}

impl Found {
    /// Finds all words in a lower-case text. A Latin word counts only as a whole word. `start` is
    /// the start of the first word of the text.
    pub(super) fn of(lower: &str, start: usize) -> Self {
        let mut found =
            Self { first: [usize::MAX; NAMES.len()], ended: [usize::MAX; NAMES.len()], opening: 0 };
        let Some(finder) = &WORDS.finder else { return found };
        for hit in finder.find_overlapping_iter(lower) {
            let (word, lists) = WORDS.words[hit.pattern().as_usize()];
            if !stands_alone(lower, word, hit.start(), hit.end()) {
                continue;
            }
            if hit.start() == start {
                found.opening |= lists;
            }
            for at in (0..NAMES.len()).filter(|at| lists & (1 << at) != 0) {
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
        for (at, name) in NAMES.iter().enumerate() {
            let count = WORDS.words.iter().filter(|(_, lists)| lists & (1 << at) != 0).count();
            assert!(count > 3, "{name}");
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

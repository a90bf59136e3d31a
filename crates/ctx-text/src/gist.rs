//! The gist of a passage: its content words, and which of them are negated.

use std::hash::BuildHasher;

use crate::WordList;
use crate::fold::is_cjk;
use ctx_core::text::Slice;
use foldhash::fast::FixedState;

/// The content words of a passage, as sorted hashes without duplicates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gist {
    /// All content words.
    pub words: Vec<u64>,
    /// Those that follow a negation.
    pub negated: Vec<u64>,
}

impl Gist {
    /// Whether the word is negated.
    pub fn negates(&self, word: u64) -> bool {
        self.negated.binary_search(&word).is_ok()
    }

    /// Whether the word occurs.
    pub fn says(&self, word: u64) -> bool {
        self.words.binary_search(&word).is_ok()
    }

    /// Returns how many words both have.
    pub fn shared(&self, other: &Self) -> usize {
        self.words.iter().filter(|&&word| other.says(word)).count()
    }
}

/// Extracts the gist of a passage. Stop words are dropped, words are stemmed, and Chinese is split
/// into pairs of characters. A negation applies to the next content word.
pub fn gist(text: &str) -> Gist {
    let mut reader = Reader::default();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let len = if is_cjk(c) {
            let len = run(rest, is_cjk);
            reader.chinese(rest.slice(..len));
            len
        } else if c.is_alphanumeric() {
            let len =
                run(rest, |c| (c.is_alphanumeric() && !is_cjk(c)) || matches!(c, '\'' | '’' | '_'));
            reader.word(rest.slice(..len));
            len
        } else {
            c.len_utf8()
        };
        rest = rest.slice(len..);
    }
    let mut gist = reader.gist;
    for words in [&mut gist.words, &mut gist.negated] {
        words.sort_unstable();
        words.dedup();
    }
    gist
}

fn run(text: &str, of: impl Fn(char) -> bool) -> usize {
    text.char_indices().find(|&(_, c)| !of(c)).map_or(text.len(), |(at, _)| at)
}

#[derive(Default)]
struct Reader {
    gist: Gist,
    negation: bool,
    /// Whether `instead` or `rather` was read, which negate only with a following `of` or `than`.
    half: bool,
}

/// Stop words.
static EMPTY: WordList = WordList::new("gist.empty");
static NEGATIONS: WordList = WordList::new("gist.negations");

impl Reader {
    fn push(&mut self, word: u64) {
        self.gist.words.push(word);
        if std::mem::take(&mut self.negation) {
            self.gist.negated.push(word);
        }
    }

    fn word(&mut self, word: &str) {
        let lower = word.to_lowercase().replace('’', "'");
        let lower = lower.trim_matches('\'');
        if std::mem::take(&mut self.half) && matches!(lower, "of" | "than") {
            self.negation = true;
        }
        if NEGATIONS.contains(lower) {
            self.negation = true;
        } else if matches!(lower, "instead" | "rather") {
            self.half = true;
        } else if !EMPTY.contains(lower) {
            self.push(hash(stem(lower)));
        }
    }

    fn chinese(&mut self, run: &str) {
        static NEGATIONS: WordList = WordList::new("gist.negations_anywhere");
        let mut rest = run;
        while let Some(c) = rest.chars().next() {
            if let Some(negation) = NEGATIONS.iter().find(|negation| rest.starts_with(*negation)) {
                self.negation = true;
                rest = rest.slice(negation.len()..);
                continue;
            }
            let two: usize = rest.chars().take(2).map(char::len_utf8).sum();
            let pair = rest.slice(..two);
            let whole = rest.len() == run.len();
            if pair.chars().count() == 2 || whole {
                self.push(hash(pair));
            }
            rest = rest.slice(c.len_utf8()..);
        }
    }
}

/// Returns a word without its ending.
fn stem(word: &str) -> &str {
    if !word.is_ascii() || word.contains('_') || word.bytes().any(|b| b.is_ascii_digit()) {
        return word;
    }
    let cut = ["ing", "ed", "es", "s"]
        .iter()
        .find_map(|end| word.strip_suffix(end).filter(|stem| stem.len() >= 3))
        .unwrap_or(word);
    cut.strip_suffix('e').filter(|stem| stem.len() >= 3).unwrap_or(cut)
}

fn hash(word: &str) -> u64 {
    FixedState::with_seed(0).hash_one(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_their_negation_are_told_apart() {
        for (a, b, same) in [
            ("Do not restart the server", "Never restart server", true),
            ("Do not restart the server", "Restart the server", false),
            ("use pnpm instead of npm", "use npm instead of pnpm", false),
            ("main.rs must not be touched", "don't touch main.rs", true),
            ("I want you to add tests", "adding tests", true),
            ("不要重启服务", "禁止重启服务", true),
            ("不要重启服务", "重启服务", false),
        ] {
            assert_eq!(gist(a) == gist(b), same, "{a} / {b}");
        }
    }
}

//! Extracts the terms of a text in one pass.

use std::sync::{Mutex, PoisonError};

use crate::WordList;
use crate::fold::{fold, is_cjk};
use crate::word::{Stems, camel_ends};

/// The maximum length of a term in bytes: a longer word is truncated, a longer whole name is
/// omitted.
const LONGEST_TERM: usize = 96;

/// The maximum length of a run of words and joints, to bound memory. A longer run is not a name.
const LONGEST_RUN: usize = 1_024;

/// Pronouns, articles, auxiliary verbs, prepositions and question words, in lower case and not
/// stemmed. Documents keep them; questions drop them if other words are left.
static STOP_WORDS: WordList = WordList::new("stop");

/// The kind of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TermKind {
    /// A word, or a part of a name; the length of a text is counted in these.
    Word,
    /// A stop word.
    Stop,
    /// A whole name, in addition to its parts.
    Whole,
}

/// A normalised term of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term<'a> {
    /// The normalised text.
    pub text: &'a str,
    /// Its kind.
    pub kind: TermKind,
}

/// The scanners that are not in use. They know the stems of the words that they have read, and most
/// words of a text were in earlier ones.
static IDLE: Mutex<Vec<Scanner>> = Mutex::new(Vec::new());

/// The number of idle scanners that are kept. More than this many threads that scan at once are
/// rare.
const KEPT: usize = 8;

/// Passes the terms of `text` to `each`, in order; a whole name follows its parts.
pub fn each_term(text: &str, each: impl FnMut(Term<'_>)) {
    let idle = || IDLE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut scanner = idle().pop().unwrap_or_default();
    scanner.each(text, each);
    let mut idle = idle();
    if idle.len() < KEPT {
        idle.push(scanner);
    }
}

/// Extracts terms, reusing its buffers between texts.
#[derive(Default)]
struct Scanner {
    stems: Stems,
    /// The current run: words and what joins them, folded, case preserved.
    run: String,
    lower: String,
}

impl Scanner {
    fn each(&mut self, text: &str, mut each: impl FnMut(Term<'_>)) {
        let mut pair = Pair::default();
        self.run.clear();
        for c in text.chars() {
            if is_cjk(c) {
                self.end_run(&mut each);
                pair.push(c, &mut each);
                continue;
            }
            pair.end(&mut each);
            fold(c, |part| {
                let goes_on = part.is_alphanumeric() || (!self.run.is_empty() && joins(part));
                if goes_on && self.run.len() < LONGEST_RUN {
                    self.run.push(part);
                } else {
                    self.end_run(&mut each);
                    if part.is_alphanumeric() {
                        self.run.push(part);
                    }
                }
            });
        }
        pair.end(&mut each);
        self.end_run(&mut each);
    }

    fn end_run(&mut self, each: &mut impl FnMut(Term<'_>)) {
        let run = std::mem::take(&mut self.run);
        let trimmed = run.trim_end_matches(joins);
        let mut names = 0;
        for name in trimmed.split(['.', '/', '\\', ':', '-']).filter(|name| !name.is_empty()) {
            names += 1;
            self.name(name, each);
        }
        if names > 1 {
            self.whole(trimmed, each);
        }
        // The buffer is reused.
        self.run = run;
        self.run.clear();
    }

    /// A name such as `max_open_files` or `parseBody`, or just a word.
    fn name(&mut self, name: &str, each: &mut impl FnMut(Term<'_>)) {
        let mut words = 0;
        for word in name.split('_').filter(|word| !word.is_empty()) {
            words += 1;
            self.contracted(word, each);
        }
        if words > 1 {
            self.whole(name.trim_end_matches('_'), each);
        }
    }

    /// A word that may contain an apostrophe.
    fn contracted(&mut self, word: &str, each: &mut impl FnMut(Term<'_>)) {
        let Some((base, rest)) = word.split_once('\'') else { return self.word(word, each) };
        match rest {
            "s" | "re" | "ve" | "ll" | "d" | "m" | "" => self.word(base, each),
            "t" => self.word(&format!("{base}t"), each),
            _ => word.split('\'').for_each(|part| self.word(part, each)),
        }
    }

    fn word(&mut self, word: &str, each: &mut impl FnMut(Term<'_>)) {
        let mut from = 0;
        camel_ends(word, |end| {
            self.part(&word[from..end], each);
            if from > 0 && end == word.len() {
                self.whole(word, each);
            }
            from = end;
        });
    }

    fn part(&mut self, part: &str, each: &mut impl FnMut(Term<'_>)) {
        self.lower.clear();
        if part.is_ascii() {
            self.lower.push_str(part.get(..LONGEST_TERM).unwrap_or(part));
            self.lower.make_ascii_lowercase();
        } else {
            for c in part.chars().flat_map(char::to_lowercase) {
                if self.lower.len() + c.len_utf8() > LONGEST_TERM {
                    break;
                }
                self.lower.push(c);
            }
        }
        if self.lower.is_empty() {
            return;
        }
        let kind = if STOP_WORDS.contains(&self.lower) { TermKind::Stop } else { TermKind::Word };
        each(Term { text: self.stems.of(&self.lower), kind });
    }

    fn whole(&mut self, name: &str, each: &mut impl FnMut(Term<'_>)) {
        if name.len() > LONGEST_TERM {
            return;
        }
        self.lower.clear();
        self.lower.extend(name.chars().flat_map(char::to_lowercase));
        // A capital may be shorter in bytes than its small letter.
        if self.lower.len() <= LONGEST_TERM {
            each(Term { text: &self.lower, kind: TermKind::Whole });
        }
    }
}

/// Whether a character may join the words of one name.
fn joins(c: char) -> bool {
    matches!(c, '_' | '.' | '/' | '\\' | ':' | '-' | '\'' | '’')
}

/// Pairs of neighbouring characters of a script without spaces.
#[derive(Default)]
struct Pair {
    last: Option<char>,
    /// Whether `last` is already part of a pair.
    paired: bool,
}

impl Pair {
    fn push(&mut self, c: char, each: &mut impl FnMut(Term<'_>)) {
        if let Some(last) = self.last {
            emit(&[last, c], each);
        }
        self.paired = self.last.is_some();
        self.last = Some(c);
    }

    fn end(&mut self, each: &mut impl FnMut(Term<'_>)) {
        if let Some(last) = self.last.take()
            && !self.paired
        {
            emit(&[last], each);
        }
        self.paired = false;
    }
}

fn emit(characters: &[char], each: &mut impl FnMut(Term<'_>)) {
    let mut bytes = [0; 8];
    let mut length = 0;
    for c in characters {
        length += c.encode_utf8(&mut bytes[length..]).len();
    }
    if let Ok(text) = std::str::from_utf8(&bytes[..length]) {
        each(Term { text, kind: TermKind::Word });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<String> {
        let mut out = Vec::new();
        each_term(text, |term| out.push(term.text.to_owned()));
        out
    }

    #[test]
    fn words_are_folded_and_stemmed() {
        assert_eq!(terms("The hikers’ Trails, CAFÉ!"), ["the", "hiker", "trail", "cafe"]);
        assert_eq!(terms("Ｃａｒｏｌｉｎｅ's painting"), ["carolin", "paint"]);
    }

    #[test]
    fn contractions_are_one_word_without_their_ending() {
        assert_eq!(terms("we're didn't O'Brien"), ["we", "didnt", "o", "brien"]);
    }

    #[test]
    fn names_of_code_are_there_in_parts_and_as_a_whole() {
        assert_eq!(terms("max_open_files"), ["max", "open", "file", "max_open_files"]);
        assert_eq!(terms("parseHttpBody()"), ["pars", "http", "bodi", "parsehttpbody"]);
        assert_eq!(terms("see src/main.rs."), ["see", "src", "main", "rs", "src/main.rs"]);
        assert_eq!(terms("std::fs::read"), ["std", "fs", "read", "std::fs::read"]);
        assert_eq!(terms("GPT-4"), ["gpt", "4", "gpt-4"]);
        assert_eq!(terms("_private_"), ["privat"]);
    }

    #[test]
    fn scripts_without_spaces_give_pairs_and_lonely_characters() {
        assert_eq!(terms("图书馆"), ["图书", "书馆"]);
        assert_eq!(terms("猫 and 狗狗"), ["猫", "and", "狗狗"]);
        assert_eq!(terms("用Rust写"), ["用", "rust", "写"]);
    }

    #[test]
    fn the_kind_tells_words_that_say_nothing_and_whole_names() {
        let mut kinds = Vec::new();
        each_term("when a_b", |term| kinds.push(term.kind));
        assert_eq!(
            kinds,
            [TermKind::Stop, TermKind::Stop, TermKind::Word, TermKind::Whole],
            "`a` is an article wherever it stands"
        );
    }

    #[test]
    fn no_term_is_longer_than_the_limit() {
        let hostile = format!("{} {}", "a/".repeat(100_000), "é_".repeat(5_000));
        let long = ["x".repeat(100_000), "ß".repeat(999), "İ".repeat(999), hostile].join(" ");
        each_term(&long, |term| {
            assert!(!term.text.is_empty() && term.text.len() <= LONGEST_TERM);
        });
        let one = terms(&"x".repeat(100_000));
        assert!(one.iter().all(|term| term.len() <= LONGEST_TERM));
    }
}

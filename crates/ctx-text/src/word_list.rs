//! Word lists from data files.

use std::collections::{BTreeMap, HashSet};
use std::ops::Deref;
use std::sync::{LazyLock, OnceLock};

use aho_corasick::AhoCorasick;
use foldhash::fast::FixedState;

/// A list of words: those of all languages, English first. The files are under `words/`: one per
/// language, and one for program output. A list has the same name in every file; a language without
/// it adds nothing.
///
/// It is loaded on first use and dereferences to a slice.
///
/// ```
/// use ctx_text::WordList;
///
/// static STOP_WORDS: WordList = WordList::new("stop");
/// assert!(STOP_WORDS.contains("the"));
/// ```
#[derive(Debug)]
pub struct WordList {
    name: &'static str,
    words: OnceLock<Vec<&'static str>>,
    set: OnceLock<HashSet<&'static str, FixedState>>,
    finder: OnceLock<Option<AhoCorasick>>,
}

impl WordList {
    /// Creates the list `name`, such as `courtesy.greetings`. A list that no file has is empty.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        let words = OnceLock::new();
        Self { name, words, set: OnceLock::new(), finder: OnceLock::new() }
    }

    /// Whether the list contains a word, in this case.
    pub fn contains(&self, word: &str) -> bool {
        self.set.get_or_init(|| self.iter().copied().collect()).contains(word)
    }

    /// Whether a text contains one of the words, also inside of others.
    pub fn is_in(&self, text: &str) -> bool {
        let finder = self.finder.get_or_init(|| AhoCorasick::new(self.iter()).ok());
        finder.as_ref().is_some_and(|finder| finder.is_match(text))
    }

    /// Whether a text begins with one of the words.
    pub fn begins(&self, text: &str) -> bool {
        self.iter().any(|word| text.starts_with(word))
    }

    /// The entries of two words, such as `毫秒 ms`.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.iter().filter_map(|entry| entry.split_once(' '))
    }
}

impl Deref for WordList {
    type Target = [&'static str];

    fn deref(&self) -> &Self::Target {
        self.words.get_or_init(|| LISTS.get(self.name).cloned().unwrap_or_default())
    }
}

/// The words of each list, by list name.
static LISTS: LazyLock<BTreeMap<String, Vec<&'static str>>> = LazyLock::new(|| {
    let mut lists: BTreeMap<String, Vec<&'static str>> = BTreeMap::new();
    for file in FILES {
        for (name, words) in parse(file) {
            let words = words.into_iter().map(|word| &*word.leak());
            lists.entry(name).or_default().extend(words);
        }
    }
    lists
});

const FILES: &[&str] = &[
    include_str!("../words/en.toml"),
    include_str!("../words/zh.toml"),
    include_str!("../words/de.toml"),
    include_str!("../words/programs.toml"),
];

/// Parses the lists of a file: arrays of strings, nested at most one table deep; else nothing.
fn parse(file: &str) -> Vec<(String, Vec<String>)> {
    let table: toml::Table = file.parse().unwrap_or_default();
    let lists = table.into_iter().flat_map(|(name, value)| match value {
        toml::Value::Table(inner) => {
            inner.into_iter().map(|(key, value)| (format!("{name}.{key}"), value)).collect()
        }
        value => vec![(name, value)],
    });
    lists.filter_map(|(name, value)| Some((name, value.try_into().ok()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the name in every `WordList::new("...")` in the workspace's sources.
    fn used() -> Vec<String> {
        let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut folders = vec![crates];
        let mut names = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if entry.is_dir() {
                    folders.push(entry);
                } else if entry.extension().is_some_and(|ending| ending == "rs")
                    && !entry.ends_with("word_list.rs")
                {
                    let source = std::fs::read_to_string(&entry).unwrap();
                    let parts = source.split("WordList::new(\"").skip(1);
                    names
                        .extend(parts.filter_map(|rest| rest.split('"').next()).map(str::to_owned));
                }
            }
        }
        names.sort_unstable();
        names
    }

    #[test]
    fn every_list_is_in_a_file_once_and_used_once() {
        for file in FILES {
            let entries = file.lines().filter(|line| line.trim_end().ends_with("= [")).count();
            assert_eq!(parse(file).len(), entries, "a file that does not parse: {file:.60}");
        }
        let known: Vec<&String> = LISTS.keys().collect();
        assert_eq!(used().iter().collect::<Vec<_>>(), known);
    }

    #[test]
    fn the_words_of_all_languages_are_one_list() {
        static NEGATIONS: WordList = WordList::new("courtesy.words");
        assert!(NEGATIONS.contains("thanks"));
        assert!(LISTS.values().all(|words| words.iter().all(|word| !word.trim().is_empty())));
        assert!(WordList::new("unheard of").is_empty());
    }
}

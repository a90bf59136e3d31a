//! Topics: the words of `topics.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

/// The maximum number of topics; those with the most words come first.
const MOST: usize = 5;

struct Topics {
    names: Vec<String>,
    /// The topic of each word.
    of: Vec<usize>,
    words: AhoCorasick,
}

static TOPICS: LazyLock<Option<Topics>> = LazyLock::new(|| {
    let table: BTreeMap<String, Vec<String>> = toml::from_str(include_str!("topics.toml")).ok()?;
    let mut builder = AhoCorasick::builder();
    builder.ascii_case_insensitive(true).match_kind(MatchKind::LeftmostLongest);
    let words = builder.build(table.values().flatten()).ok()?;
    let of = table.values().enumerate().flat_map(|(nth, words)| words.iter().map(move |_| nth));
    Some(Topics { of: of.collect(), names: table.into_keys().collect(), words })
});

pub(super) fn find(text: &str) -> Vec<String> {
    let Some(topics) = TOPICS.as_ref() else { return Vec::new() };
    let bytes = text.as_bytes();
    let mut counts = vec![0usize; topics.names.len()];
    for found in topics.words.find_iter(text) {
        let joined = |at: Option<&u8>| at.is_some_and(u8::is_ascii_alphanumeric);
        let latin = bytes.get(found.start()).is_some_and(u8::is_ascii);
        let before = found.start().checked_sub(1).and_then(|at| bytes.get(at));
        if latin && (joined(before) || joined(bytes.get(found.end()))) {
            continue;
        }
        if let Some(count) =
            topics.of.get(found.pattern().as_usize()).and_then(|t| counts.get_mut(*t))
        {
            *count += 1;
        }
    }
    let mut found: Vec<usize> = (0..counts.len()).filter(|nth| counts[*nth] > 0).collect();
    found.sort_by_key(|nth| std::cmp::Reverse(counts[*nth]));
    found.truncate(MOST);
    found.into_iter().filter_map(|nth| topics.names.get(nth).cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_found_in_english_and_in_chinese() {
        assert_eq!(find("The Postgres migration failed"), ["database", "error"]);
        assert_eq!(find("数据库迁移失败了，先回滚"), ["database", "deployment", "error"]);
        assert!(find("nothing of note").is_empty());
        assert!(find("latest contests").is_empty(), "words count where they stand alone");
    }

    #[test]
    fn the_most_frequent_topics_come_first_and_are_limited() {
        let all = "git docs login deploy test test sql css server slow bug";
        let found = find(all);
        assert_eq!((found.len(), found[0].as_str()), (MOST, "testing"));
    }
}

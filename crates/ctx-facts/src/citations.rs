//! Citations of entries in a summary: `[e:ID]`.

use std::ops::Range;
use std::sync::LazyLock;

use ctx_core::EntryId;
use ctx_text::collapsed;
use regex::{Captures, Regex};

/// The minimum length of a shortened id; enough to distinguish most of them.
const LEAST_CHARS: usize = 8;

/// Ids up to this length are cited in full, and all ids if prefixes exceed `MOST_CHARS`.
const SHORT_CHARS: usize = 12;
const MOST_CHARS: usize = 32;

/// How the ids of one history are cited. A full UUID costs a summary a dozen tokens per line.
#[derive(Clone, Copy, Debug)]
pub struct ShortIds {
    chars: usize,
}

impl ShortIds {
    /// Finds the shortest prefix length that distinguishes all of these ids.
    pub fn of<'a>(ids: impl Iterator<Item = &'a EntryId>) -> Self {
        // Examines `MOST_CHARS` + 1 bytes of an id at most: a file may have huge ids.
        let long = ids.filter(|id| is_long(id)).map(|id| id.get(..=MOST_CHARS).unwrap_or(id));
        let mut long: Vec<&str> = long.collect();
        long.sort_unstable();
        let common = |pair: &[&str]| {
            let equal = pair[0].bytes().zip(pair[1].bytes()).take_while(|(a, b)| a == b);
            equal.count()
        };
        let alike = long.windows(2).map(common).max().unwrap_or(0);
        let chars = LEAST_CHARS.max(alike + 1);
        Self { chars: if chars > MOST_CHARS { usize::MAX } else { chars } }
    }

    /// Returns the id as it is cited.
    pub fn short(self, id: &EntryId) -> EntryId {
        match id.get(..self.chars) {
            Some(short) if is_long(id) => short.into(),
            _ => id.clone(),
        }
    }
}

/// A citation in a text: `[e:ID]`, or several ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Citation<'a> {
    /// Its byte range, brackets included.
    pub range: Range<usize>,
    /// The ids.
    pub ids: Vec<&'a str>,
}

static CITATION: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\[e:([^\[\]\n]{0,400})\]").expect("a test uses the pattern"));

/// A citation with the blanks before it.
static WITH_BLANKS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"( *)(\[e:[^\[\]\n]{0,400}\])").expect("a test uses the pattern"));

/// Returns the citations of a text.
pub fn citations(text: &str) -> Vec<Citation<'_>> {
    let found = CITATION.captures_iter(text).map(|found| {
        let (all, [inner]) = found.extract();
        let start = all.as_ptr() as usize - text.as_ptr() as usize;
        let ids = inner.split([',', ';']).map(|id| id.trim().trim_start_matches("e:").trim());
        let ids = ids.filter(|id| !id.is_empty()).collect();
        Citation { range: start..start + all.len(), ids }
    });
    found.collect()
}

/// Removes the citations of a text, and collapses white space.
#[must_use]
pub fn without_citations(text: &str) -> String {
    collapsed(&CITATION.replace_all(text, ""))
}

/// Removes citations that are neither an id in `ids` nor a prefix of one: an unaudited
/// summary may cite entries that never existed.
pub fn without_unknown_citations<'a>(
    text: String,
    ids: impl Iterator<Item = &'a EntryId>,
) -> String {
    if !CITATION.is_match(&text) {
        return text;
    }
    let mut ids: Vec<&str> = ids.map(|id| &**id).collect();
    ids.sort_unstable();
    let is_known = |cited: &&str| {
        let next = ids.get(ids.partition_point(|id| id < cited));
        next.is_some_and(|id| id == cited || (cited.len() >= LEAST_CHARS && id.starts_with(*cited)))
    };
    let known = WITH_BLANKS.replace_all(&text, |found: &Captures<'_>| {
        let cited = citations(&found[2]).into_iter().flat_map(|citation| citation.ids);
        let (known, unknown): (Vec<&str>, Vec<&str>) = cited.partition(is_known);
        match (known.is_empty(), unknown.is_empty()) {
            (true, _) => String::new(),
            (false, true) => found[0].to_owned(),
            (false, false) => {
                let known: Vec<String> = known.iter().map(|id| format!("[e:{id}]")).collect();
                format!("{}{}", &found[1], known.join(" "))
            }
        }
    });
    known.into_owned()
}

fn is_long(id: &EntryId) -> bool {
    id.len() > SHORT_CHARS && id.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cited(ids: &[&str]) -> Vec<String> {
        let ids: Vec<EntryId> = ids.iter().map(|&id| id.into()).collect();
        let cited = ShortIds::of(ids.iter());
        ids.iter().map(|id| cited.short(id).to_string()).collect()
    }

    #[test]
    fn long_ids_are_cited_by_what_tells_them_apart() {
        let v4 = ["80d3b701-2d53-4f14-aaff-43bcf8c43c47", "5f778de8-83d5-48de-b83e-ef71ff2f0288"];
        assert_eq!(cited(&v4), ["80d3b701", "5f778de8"]);
        // Ids made within the same second share a prefix.
        let v7 = ["019a0d3c-9d53-7f14-aaff-43bcf8c43c47", "019a0d3c-aad5-78de-b83e-ef71ff2f0288"];
        assert_eq!(cited(&v7), ["019a0d3c-9", "019a0d3c-a"]);
    }

    #[test]
    fn a_citation_of_what_never_was_is_taken_out() {
        let ids: [EntryId; 2] = ["0000000a".into(), "80d3b701-2d53-4f14-aaff-43bcf8c43c47".into()];
        for (text, expected) in [
            ("- a [e:0000000a]\n- b [e:80d3b701]", "- a [e:0000000a]\n- b [e:80d3b701]"),
            ("- a [e:deadbeef]\n- b [e:0000000a]", "- a\n- b [e:0000000a]"),
            ("- a [e:0000000a, e:deadbeef] [e:x].", "- a [e:0000000a]."),
            ("- a [e:0]", "- a"),
            ("- a [e:]", "- a"),
            ("- a", "- a"),
        ] {
            assert_eq!(without_unknown_citations(text.to_owned(), ids.iter()), expected, "{text}");
        }
    }

    #[test]
    fn short_and_strange_ids_stay() {
        let ids = ["0000000a", "a", "eine-kennung-mit-ü-und-mehr-text", "toolu_01", "x\u{1f600}"];
        assert_eq!(cited(&ids), ids);
        let alike = ["a".repeat(1 << 20), format!("{}b", "a".repeat(1 << 20))];
        assert_eq!(cited(&[&alike[0], &alike[1]]), alike);
    }
}

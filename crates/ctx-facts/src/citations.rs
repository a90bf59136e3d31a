//! Citations of entries in a summary: `[e:ID]`.

use std::ops::Range;

use ctx_core::EntryId;
use ctx_core::text::Slice;

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

/// Returns the citations of a text.
pub fn citations(text: &str) -> Vec<Citation<'_>> {
    const LONGEST: usize = 400;
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(open) = memchr::memmem::find(text.as_bytes().slice(at..), b"[e:") {
        let start = at + open;
        at = start + 3;
        let inner = text.as_bytes().slice(at..);
        let near = inner.slice(..inner.len().min(LONGEST));
        let Some(len) = near.iter().position(|b| matches!(b, b']' | b'\n' | b'[')) else {
            continue;
        };
        if near.get(len) != Some(&b']') {
            continue;
        }
        let ids = text.slice(at..at + len).split([',', ';']);
        let ids =
            ids.map(|id| id.trim().trim_start_matches("e:").trim()).filter(|id| !id.is_empty());
        out.push(Citation { range: start..at + len + 1, ids: ids.collect() });
        at += len + 1;
    }
    out
}

/// Removes the citations of a text, and collapses white space.
#[must_use]
pub fn without_citations(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for cited in citations(text) {
        out.push_str(text.slice(at..cited.range.start));
        at = cited.range.end;
    }
    out.push_str(text.slice(at..));
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Removes citations that are neither an id in `ids` nor a prefix of one: an unaudited
/// summary may cite entries that never existed.
pub fn without_unknown_citations<'a>(
    text: String,
    ids: impl Iterator<Item = &'a EntryId>,
) -> String {
    let found = citations(&text);
    if found.is_empty() {
        return text;
    }
    let mut ids: Vec<&str> = ids.map(|id| &**id).collect();
    ids.sort_unstable();
    let is_known = |cited: &&&str| {
        let next = ids.get(ids.partition_point(|id| id < *cited));
        next.is_some_and(|id| {
            id == *cited || (cited.len() >= LEAST_CHARS && id.starts_with(**cited))
        })
    };
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for cited in found {
        let known: Vec<String> =
            cited.ids.iter().filter(is_known).map(|id| format!("[e:{id}]")).collect();
        let before = text.slice(done..cited.range.start);
        if known.len() == cited.ids.len() && !known.is_empty() {
            continue;
        }
        out.push_str(if known.is_empty() { before.trim_end_matches(' ') } else { before });
        out.push_str(&known.join(" "));
        done = cited.range.end;
    }
    out.push_str(text.slice(done..));
    out
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

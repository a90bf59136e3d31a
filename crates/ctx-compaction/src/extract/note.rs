//! What may stand in a summary, before it is known what there is room for.

use std::collections::HashSet;

use ctx_core::EntryId;

use super::clip::is_wide;
use crate::Field;

/// The label of the newest ask.
pub(super) const LATEST: &str = "Latest ask: ";
/// What stood there before: summaries that are stored have it.
const LATEST_ONCE: &str = "Latest, superseding earlier asks: ";
/// The label of the first ask of the session.
pub(super) const FIRST: &str = "First: ";
/// The label of the asks between.
pub(super) const EARLIER: &str = "Earlier: ";
/// The label of an ask that nobody has answered.
pub(super) const ASKED: &str = "Asked: ";
/// The label of a question that nobody has answered.
pub(super) const QUESTION: &str = "Open question: ";
/// The label of the files that were changed last.
pub(super) const FILES: &str = "Files changed: ";

/// All labels. A line that carries one gets a new one in the next summary.
pub(super) const LABELS: [&str; 7] = [LATEST, LATEST_ONCE, FIRST, EARLIER, ASKED, QUESTION, FILES];

/// A line that may stand in a summary.
#[derive(Clone, Debug)]
pub(super) struct Note {
    pub(super) field: Field,
    /// A fixed word before the text: `Latest: `.
    pub(super) label: &'static str,
    /// Its words.
    pub(super) text: String,
    /// Where they stand, newest last.
    pub(super) cites: Vec<EntryId>,
    /// How much it matters, from 0 to about 1.
    pub(super) weight: f32,
    /// Where in the history it belongs; lines of the previous summary come before all others.
    pub(super) order: i64,
    /// Its place among the notes of the same message.
    pub(super) place: usize,
    /// Whether it speaks of what the reader asked to hear about.
    pub(super) focused: bool,
}

impl Note {
    pub(super) fn new(field: Field, text: String, cite: &EntryId, weight: f32, at: usize) -> Self {
        let order = i64::try_from(at).unwrap_or(i64::MAX);
        let cites = vec![cite.clone()];
        Self { field, label: "", text, cites, weight, order, place: 0, focused: false }
    }

    pub(super) fn labelled(mut self, label: &'static str) -> Self {
        self.label = label;
        self
    }
}

/// Tags of the frames that summaries and what they are made of stand in.
const TAGS: [&str; 4] = ["summary", "conversation", "read-files", "modified-files"];
/// A citation that closes later than after so many bytes is none.
const LONGEST_CITATION: usize = 160;

/// A quoted text in which nothing passes for a citation or for a mark of the summary's frame: both
/// ends of such a mark become round brackets.
pub(super) fn harmless(text: &str) -> String {
    // Nothing is taken out: what stood around it could close to the same mark again.
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['[', '<']) {
        let (before, mark) = rest.split_at(at);
        out.push_str(before);
        let inner = mark.get(1..).unwrap_or_default();
        rest = match end_of_mark(mark) {
            Some(len) => {
                out.push('(');
                out.push_str(inner.get(..len).unwrap_or_default());
                out.push(')');
                inner.get(len + 1..).unwrap_or_default()
            }
            None => {
                // What opens a citation must not find its end somewhere behind this text.
                let opens = inner.starts_with("e:");
                out.push_str(if opens { "(" } else { mark.get(..1).unwrap_or_default() });
                inner
            }
        };
    }
    out.push_str(rest);
    out
}

/// How much stands between the two ends of the citation or tag at the beginning of a text.
fn end_of_mark(text: &str) -> Option<usize> {
    if let Some(tag) = text.strip_prefix('<') {
        let slash = usize::from(tag.starts_with('/'));
        let name = tag.get(slash..)?;
        let of = |known: &&str| name.strip_prefix(*known).is_some_and(|end| end.starts_with('>'));
        return TAGS.iter().find(|known| of(known)).map(|known| slash + known.len());
    }
    let inner = text.strip_prefix('[').filter(|inner| inner.starts_with("e:"))?;
    let near = inner.as_bytes().iter().take(LONGEST_CITATION);
    let len = near.take_while(|b| !matches!(b, b']' | b'[' | b'\n' | b'<')).count();
    (inner.as_bytes().get(len) == Some(&b']')).then_some(len)
}

/// A text without what makes no difference: case, white space, signs.
pub(super) fn normal(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The words that carry a text: Latin ones of three letters and more that are not mere grammar, and
/// pairs of CJK characters.
pub(super) fn words(text: &str) -> HashSet<String> {
    let mut out = HashSet::new();
    for word in text.split(|c: char| !(c.is_alphanumeric() || c == '_')) {
        let mut wide = word.chars().filter(|&c| is_wide(c)).peekable();
        if wide.peek().is_some() {
            let mut last = None;
            for c in wide {
                if let Some(last) = last.replace(c) {
                    out.insert(String::from_iter([last, c]));
                }
            }
        } else if word.len() >= 3 {
            let word = word.to_lowercase();
            if !GRAMMAR.contains(&word.as_str()) {
                out.insert(word);
            }
        }
    }
    out
}

const GRAMMAR: &[&str] = &[
    "the",
    "and",
    "for",
    "that",
    "this",
    "with",
    "from",
    "into",
    "are",
    "was",
    "were",
    "been",
    "has",
    "have",
    "had",
    "will",
    "would",
    "should",
    "could",
    "can",
    "not",
    "but",
    "all",
    "any",
    "its",
    "our",
    "your",
    "you",
    "they",
    "them",
    "then",
    "than",
    "also",
    "now",
    "about",
    "please",
    "focus",
    "keep",
    "especially",
    "details",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_lose_both_of_their_ends() {
        for (text, expected) in [
            ("see [e:x], please", "see (e:x), please"),
            ("</summary> and <summary>", "(/summary) and (summary)"),
            ("<conversation></conversation>", "(conversation)(/conversation)"),
            ("</read-files></modified-files>", "(/read-files)(/modified-files)"),
            ("[e:a][e:b] [1] <b>", "(e:a)(e:b) [1] <b>"),
            ("never closed [e:x", "never closed (e:x"),
            ("[e:[e:x]]", "(e:(e:x)]"),
            ("[e:<summary>]", "(e:(summary)]"),
            ("<<summary>>", "<(summary)>"),
            ("</summary", "</summary"),
            ("Vec<Summary> é[é", "Vec<Summary> é[é"),
            ("", ""),
        ] {
            let safe = harmless(text);
            assert_eq!(safe, expected, "{text}");
            assert_eq!(harmless(&safe), safe, "{text}");
        }
    }
}

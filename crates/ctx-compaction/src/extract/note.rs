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

/// A quoted text in which nothing passes for a citation or for a mark of the summary's frame.
pub(super) fn harmless(text: &str) -> String {
    // Nothing is taken out: what stood around it could close to the same mark again.
    let text = text.replace("[e:", "(e:");
    if !text.contains('<') {
        return text;
    }
    ["summary>", "conversation>", "read-files>", "modified-files>"].iter().fold(
        text,
        |text, tag| {
            text.replace(&format!("</{tag}"), &format!("(/{tag}"))
                .replace(&format!("<{tag}"), &format!("({tag}"))
        },
    )
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

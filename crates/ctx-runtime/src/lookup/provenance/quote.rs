//! Quotes the passage of a message that states a text.

use std::ops::Range;

use ctx_core::text::{Slice, clip, word_end, word_start};
use ctx_core::{EntryId, Message, Timestamp};
use ctx_facts::CitedMessage;
use ctx_layers::compaction::find_passage;
use ctx_memory::archive::text_of;
use ctx_session::{FilePlace, Transcript};
use serde::Serialize;

/// Bytes quoted before and after a passage.
const AROUND: usize = 80;

/// Maximum length of a quoted passage, in characters.
const QUOTED: usize = 400;

/// Maximum length in bytes of a line of a message that is compared word by word.
const COMPARED: usize = 600;

/// A message that a text comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceMessage {
    /// Its entry.
    pub entry: EntryId,
    /// Its role.
    pub role: String,
    /// Its time, if recorded.
    pub timestamp: Option<Timestamp>,
    /// How it supports the text.
    pub support: Support,
    /// The text before the passage.
    pub before: String,
    /// The passage; the beginning of the message if it does not contain the words.
    pub quote: String,
    /// The text after the passage.
    pub after: String,
    /// Where it is in the transcript; `None` if the file does not contain it as written.
    pub place: Option<FilePlace>,
}

/// How a message supports a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Support {
    /// It contains the words.
    Verbatim,
    /// It states the same in other words.
    Reworded,
    /// The line cites it, but the words are not in it.
    Cited,
}

impl SourceMessage {
    /// Quotes words that the message contains, of the first group if possible, verbatim if possible.
    pub(in crate::lookup) fn of(said: &CitedMessage, groups: &[Vec<String>]) -> Self {
        let by = |words: &Vec<String>| {
            let found = Self::find(said, words, Support::Verbatim);
            found.or_else(|| Self::find(said, words, Support::Reworded))
        };
        groups.iter().find_map(by).unwrap_or_else(|| {
            let text = text_of(&said.message).unwrap_or_default();
            Self::quoting(said, &text, 0..word_end(&text, AROUND), Support::Cited)
        })
    }

    /// Quotes the first of the words that the message contains, in this way.
    pub(super) fn find(said: &CitedMessage, words: &[String], support: Support) -> Option<Self> {
        let text = text_of(&said.message)?;
        let range = match support {
            Support::Verbatim => {
                let (low, places) = folded(&text);
                let of = |words: &String| occurrence(&low, &folded(words).0);
                let found = words.iter().find_map(of)?;
                *places.get(found.start)?..*places.get(found.end)?
            }
            _ => {
                // Of equal length; arguments of calls have escaped line breaks.
                let text = text.replace("\\n", " \n");
                let mut at = 0;
                let ranges = text.split('\n').map(|line| {
                    at += line.len() + 1;
                    at - line.len() - 1..at - 1
                });
                let ranges: Vec<_> = ranges.filter(|range| range.len() <= COMPARED).collect();
                let lines: Vec<&str> =
                    ranges.iter().map(|range| text.slice(range.clone())).collect();
                ranges.get(find_passage(&lines.join("\n"), words)?.line)?.clone()
            }
        };
        Some(Self::quoting(said, &text, range, support))
    }

    fn quoting(said: &CitedMessage, text: &str, range: Range<usize>, support: Support) -> Self {
        let from = word_start(text, range.start.saturating_sub(AROUND)).min(range.start);
        let to = word_end(text, range.end + AROUND).max(range.end);
        Self {
            entry: said.id.clone(),
            role: said.message.role.name().to_owned(),
            timestamp: said.message.meta.timestamp,
            support,
            before: text.slice(from..range.start).to_owned(),
            quote: clip(text.slice(range.clone()), QUOTED),
            after: text.slice(range.end..to).to_owned(),
            place: None,
        }
    }

    /// Finds where the quoted part of the message is in the file.
    pub(in crate::lookup) fn find_place(&mut self, transcript: &Transcript) {
        let quote = self.quote.trim_end_matches('…');
        let has = |part: &Message| text_of(part).is_some_and(|text| text.contains(quote));
        self.place = transcript.place_of(&self.entry, has);
    }
}

/// Returns a text in lower case with single spaces and without marks of Markdown, and for each byte
/// of it and its end the offset in the text.
pub(in crate::lookup) fn folded(text: &str) -> (String, Vec<usize>) {
    let (mut low, mut places) = (String::with_capacity(text.len()), Vec::new());
    for (at, c) in text.char_indices() {
        match c.is_whitespace() {
            true if low.ends_with(' ') => continue,
            false if matches!(c, '*' | '`') => continue,
            true => low.push(' '),
            false => low.extend(c.to_lowercase()),
        }
        places.resize(low.len(), at);
    }
    places.push(text.len());
    (low, places)
}

/// Finds words that are not a part of longer words.
pub(super) fn occurrence(text: &str, words: &str) -> Option<Range<usize>> {
    let joins = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    let found = text.match_indices(words).filter(|_| !words.is_empty());
    let mut found = found.map(|(at, _)| at..at + words.len());
    found.find(|found| {
        let before = text.slice(..found.start).chars().next_back();
        let after = text.slice(found.end..).chars().next();
        !(joins(before) && joins(words.chars().next())
            || joins(after) && joins(words.chars().next_back()))
    })
}

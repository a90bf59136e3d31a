//! Finds the open request: what the user asked last and is not answered.

use ctx_core::text::Slice;
use ctx_core::{Role, ToolCall};

use super::voices::Voices;
use crate::CitedMessage;
use ctx_text::{clip, is_courtesy, marks, segments, sentences};

/// A request: the message and its sentences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ask {
    /// The index of the message.
    pub(super) at: usize,
    /// The requests, sentence by sentence.
    pub(super) sentences: Vec<String>,
}

/// A longer message is a document rather than a request.
const MOST_SENTENCES: usize = 12;
const LONGEST: usize = 400;

/// Returns the open request, if the user's last message has no final answer. For "continue" and the
/// like, the preceding request is included.
pub(super) fn open_ask(said: &[CitedMessage], voices: &Voices<'_>) -> Vec<Ask> {
    let words = |at: usize| {
        let is_user = said.get(at).is_some_and(|one| one.message.role == Role::User && !one.pinned);
        is_user.then(|| voices.of_message(at).user).filter(|words| !words.is_empty())
    };
    let Some(last) = (0..said.len()).rev().find(|&at| words(at).is_some()) else {
        return Vec::new();
    };
    let answers = said.slice(last + 1..);
    if answers.iter().any(is_final) {
        return Vec::new();
    }
    let newest = words(last).unwrap_or_default();
    let mut asks = vec![Ask { at: last, sentences: asked(&newest) }];
    if newest.chars().count() <= 24 {
        let before = (0..last).rev().filter_map(|at| Some((at, words(at)?)));
        let fuller = before.take(8).find(|(_, words)| words.chars().count() > 24);
        asks.extend(fuller.map(|(at, words)| {
            let mut sentences = asked(&words);
            sentences.truncate(2);
            Ask { at, sentences }
        }));
    }
    asks.retain(|ask| !ask.sentences.is_empty());
    asks
}

/// Whether a message ends the turn: text of the assistant without a call.
fn is_final(one: &CitedMessage) -> bool {
    let call: Option<&ToolCall> = one.message.tool_calls().next();
    one.message.role == Role::Assistant
        && call.is_none()
        && !one.message.plain_text().trim().is_empty()
}

/// Returns the sentences of a message that ask for something; if none clearly does, the first ones.
fn asked(words: &str) -> Vec<String> {
    let prose = segments(words);
    let all = prose.iter().filter(|segment| !segment.is_code);
    let all = all.filter_map(|segment| words.get(segment.range.clone()));
    let all: Vec<&str> = all.flat_map(sentences).filter(|s| !is_courtesy(s)).take(400).collect();
    let asking = |s: &&&str| {
        let marks = marks(s);
        marks.request || marks.question || marks.constraint
    };
    let mut out: Vec<&str> = all.iter().filter(asking).copied().take(MOST_SENTENCES).collect();
    if out.is_empty() {
        out = all.into_iter().take(2).collect();
    }
    out.into_iter().map(|s| clip(s, LONGEST).to_owned()).collect()
}

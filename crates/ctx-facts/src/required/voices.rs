//! The speakers within a message.

use std::borrow::Cow;
use std::collections::HashMap;

use ctx_core::{Block, Message, Role, ToolCall};

use crate::CitedMessage;
use ctx_text::without_injected;

/// The text of one message, by speaker.
#[derive(Debug, Default)]
pub(super) struct Voice<'a> {
    /// The user's text, without what programs add.
    pub(super) user: Cow<'a, str>,
    /// The assistant's text.
    pub(super) assistant: Cow<'a, str>,
    /// The calls that the results in this message answer, if known.
    pub(super) answered: Vec<Option<&'a ToolCall>>,
}

/// The text of all messages, and the calls that results belong to.
pub(super) struct Voices<'a> {
    said: &'a [CitedMessage],
    calls: HashMap<&'a str, &'a ToolCall, foldhash::fast::FixedState>,
}

impl<'a> Voices<'a> {
    pub(super) fn of(said: &'a [CitedMessage]) -> Self {
        let mut calls = HashMap::default();
        for call in said.iter().flat_map(|one| one.message.tool_calls()) {
            calls.insert(&*call.id, call);
        }
        Self { said, calls }
    }

    /// Whether any tool was called.
    pub(super) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    pub(super) fn of_message(&self, at: usize) -> Voice<'a> {
        let Some(one) = self.said.get(at) else { return Voice::default() };
        let message = &*one.message;
        let answered = message.tool_results().map(|r| self.calls.get(&*r.call_id).copied());
        Voice {
            user: if message.role == Role::User { own_words(message) } else { Cow::Borrowed("") },
            assistant: match message.role {
                Role::Assistant | Role::BranchSummary => text(message),
                _ => Cow::Borrowed(""),
            },
            answered: answered.collect(),
        }
    }
}

/// Returns the text blocks of a message, without a copy if there is only one.
fn text(message: &Message) -> Cow<'_, str> {
    let mut texts = message.blocks.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        _ => None,
    });
    match (texts.next(), texts.next()) {
        (None, _) => Cow::Borrowed(""),
        (Some(only), None) => Cow::Borrowed(only),
        _ => Cow::Owned(message.plain_text()),
    }
}

/// Returns the user's own text. Each block is examined separately, as agents add blocks too.
pub(super) fn own_words(message: &Message) -> Cow<'_, str> {
    let mut out = Cow::Borrowed("");
    for block in &message.blocks {
        let Block::Text { text } = block else { continue };
        let own = without_injected(text);
        if own.is_empty() {
            continue;
        }
        if out.is_empty() {
            out = own;
        } else {
            let all: &mut String = out.to_mut();
            all.push('\n');
            all.push_str(&own);
        }
    }
    out
}

//! The speakers within a message.

use std::borrow::Cow;
use std::collections::HashMap;

use ctx_core::{Block, CallId, Message, Role};
use ctx_text::without_injected;

use crate::command::command_line;

/// The text of one message, by speaker.
#[derive(Debug, Default)]
pub(super) struct Speakers<'a> {
    /// The user's text, without what programs add.
    pub(super) user: Cow<'a, str>,
    /// The assistant's text.
    pub(super) assistant: Cow<'a, str>,
    /// The command lines of the calls that the results in this message answer, if known.
    pub(super) answered: Vec<Option<String>>,
}

/// The calls that have no result yet.
#[derive(Debug, Default)]
pub(super) struct OpenCalls {
    commands: HashMap<CallId, String, foldhash::fast::FixedState>,
    /// Whether any tool was called.
    pub(super) any: bool,
}

impl OpenCalls {
    /// Reads the calls and results of a message, and returns its text by speaker.
    pub(super) fn read<'m>(&mut self, message: &'m Message) -> Speakers<'m> {
        for call in message.tool_calls() {
            self.any = true;
            if let Some(command) = command_line(call) {
                self.commands.insert(call.id.clone(), command);
            }
        }
        Speakers {
            user: if message.role == Role::User { own_words(message) } else { Cow::Borrowed("") },
            assistant: match message.role {
                Role::Assistant | Role::BranchSummary => text(message),
                _ => Cow::Borrowed(""),
            },
            answered: message.tool_results().map(|r| self.commands.remove(&r.call_id)).collect(),
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

/// Returns the text that the user wrote of a message in the user's role. Each block is examined separately, as agents add blocks too.
pub fn own_words(message: &Message) -> Cow<'_, str> {
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

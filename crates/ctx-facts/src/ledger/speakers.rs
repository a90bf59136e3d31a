//! The speakers within a message.

use std::collections::HashMap;

use ctx_core::{Block, CallId, Message, Role};
use ctx_text::without_injected;

use crate::command::command_line;

/// The text of one message, by speaker.
#[derive(Debug, Default)]
pub(super) struct Speakers {
    /// The user's text, without what programs add.
    pub(super) user: String,
    /// The assistant's text.
    pub(super) assistant: String,
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
    pub(super) fn read(&mut self, message: &Message) -> Speakers {
        for call in message.tool_calls() {
            self.any = true;
            if let Some(command) = command_line(call) {
                self.commands.insert(call.id.clone(), command);
            }
        }
        let is_user = message.role == Role::User;
        let is_assistant = matches!(message.role, Role::Assistant | Role::BranchSummary);
        Speakers {
            user: if is_user { own_words(message) } else { String::new() },
            assistant: if is_assistant { message.plain_text() } else { String::new() },
            answered: message.tool_results().map(|r| self.commands.remove(&r.call_id)).collect(),
        }
    }
}

/// Returns the text that the user wrote of a message in the user's role. Each block is examined
/// separately, as agents add blocks too.
pub fn own_words(message: &Message) -> String {
    let texts = message.blocks.iter().filter_map(|block| match block {
        Block::Text { text } => Some(without_injected(text)),
        _ => None,
    });
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

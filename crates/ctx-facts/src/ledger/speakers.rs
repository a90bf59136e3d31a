//! The speakers within a message.

use std::collections::HashMap;

use ctx_core::{Block, CallId, Message, Role};
use ctx_text::{Reading, read, without_injected};

use crate::CitedMessage;
use crate::command::command_line;

/// The texts of one message.
pub(super) struct Texts {
    /// What the user wrote, without what programs add; all text of a pinned message.
    user: String,
    assistant: String,
}

impl Texts {
    /// Returns the texts of a message.
    pub(super) fn of(one: &CitedMessage) -> Self {
        let message = &one.message;
        let user = match message.role {
            _ if one.pinned => message.plain_text(),
            Role::User => own_words(message),
            _ => String::new(),
        };
        let is_assistant = matches!(message.role, Role::Assistant | Role::BranchSummary);
        let assistant = is_assistant && !one.pinned;
        Self { user, assistant: if assistant { message.plain_text() } else { String::new() } }
    }
}

/// One message, by speaker. Its texts are read once, here.
#[derive(Debug)]
pub(super) struct Speakers<'a> {
    /// What the user wrote.
    pub(super) user: Reading<'a>,
    /// What the assistant wrote.
    pub(super) assistant: Reading<'a>,
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
    /// Reads a message.
    pub(super) fn read<'a>(&mut self, message: &Message, texts: &'a Texts) -> Speakers<'a> {
        for call in message.tool_calls() {
            self.any = true;
            if let Some(command) = command_line(call) {
                self.commands.insert(call.id.clone(), command);
            }
        }
        Speakers {
            user: read(&texts.user),
            assistant: read(&texts.assistant),
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

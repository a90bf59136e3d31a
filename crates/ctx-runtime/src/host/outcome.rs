//! The input and the outcome of a turn.

use ctx_core::{Block, Manifest, Message, Role, Tokens, Usage};

use super::Notice;

/// The user's input.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Input {
    pub(crate) message: Message,
    /// Whether it goes to the model even if it looks like a command.
    pub(crate) is_literal: bool,
    pub(crate) is_heartbeat: bool,
}

impl Input {
    /// Returns the message.
    pub fn message(&self) -> &Message {
        &self.message
    }

    /// Creates a text that goes to the model even if it looks like a command.
    pub fn literal(text: impl Into<String>) -> Self {
        Self { is_literal: true, ..Self::from(text.into()) }
    }

    /// Creates a heartbeat: a text by which a host lets the agent check whether there is anything
    /// to do, without a user message. Engines see this flag with each message of the turn.
    pub fn heartbeat(text: impl Into<String>) -> Self {
        Self { is_literal: true, is_heartbeat: true, ..Self::from(text.into()) }
    }
}

impl From<&str> for Input {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<String> for Input {
    fn from(text: String) -> Self {
        Message::text(Role::User, text).into()
    }
}

/// Text and images.
impl From<Vec<Block>> for Input {
    fn from(blocks: Vec<Block>) -> Self {
        Message::new(Role::User, blocks).into()
    }
}

impl From<Message> for Input {
    fn from(message: Message) -> Self {
        Self { message, is_literal: false, is_heartbeat: false }
    }
}

/// The outcome of a turn.
#[derive(Clone, Debug, Default)]
pub struct TurnOutcome {
    /// The answer; `None` if it is silent.
    pub answer: Option<String>,
    /// The model that answered; `None` for commands.
    pub model: Option<String>,
    /// The sum of the usage that providers reported for the turn.
    pub usage: Usage,
    /// Number of requests.
    pub requests: u32,
    /// Number of stored compactions.
    pub compactions: u32,
    /// Notices for the user.
    pub notices: Vec<Notice>,
    /// The manifest of the last request.
    pub manifest: Option<Manifest>,
    /// How full the window is after the turn.
    pub fill: Option<WindowFill>,
}

/// How full a session's window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowFill {
    /// Tokens of the session's messages, system prompt and tools.
    pub used: Tokens,
    /// Maximum size of a request: the window minus the reserve.
    pub limit: Tokens,
    /// The window.
    pub window: Tokens,
}

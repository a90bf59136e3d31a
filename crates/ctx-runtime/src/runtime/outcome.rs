//! What a turn is given, and what it gives back.

use ctx_core::{Block, Manifest, Message, Role, Tokens, Usage};

use super::Notice;

/// What a user says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    message: Message,
    is_literal: bool,
    is_heartbeat: bool,
}

impl Input {
    /// The message.
    #[must_use]
    pub fn message(&self) -> &Message {
        &self.message
    }

    /// A text that is for the model also where it reads like a command.
    #[must_use]
    pub fn literal(text: impl Into<String>) -> Self {
        Self { is_literal: true, ..Self::from(text.into()) }
    }

    /// A text by which a host has the agent look whether there is anything to do, with nobody speaking.
    /// Engines are told so of each message of the turn.
    #[must_use]
    pub fn heartbeat(text: impl Into<String>) -> Self {
        Self { is_literal: true, is_heartbeat: true, ..Self::from(text.into()) }
    }

    pub(crate) fn is_heartbeat(&self) -> bool {
        self.is_heartbeat
    }

    /// Whether it is for the model, whatever it reads like.
    pub(crate) fn is_literal(&self) -> bool {
        self.is_literal
    }

    pub(crate) fn into_message(self) -> Message {
        self.message
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

/// What came of a turn.
#[derive(Clone, Debug, Default)]
pub struct TurnOutcome {
    /// The answer; `None` where it is silent.
    pub answer: Option<String>,
    /// The model that gave it. Commands are answered by none.
    pub model: Option<String>,
    /// What providers reported for all requests of the turn, together.
    pub usage: Usage,
    /// How many requests were made.
    pub requests: u32,
    /// How many compactions were stored.
    pub compactions: u32,
    /// What a person should be told.
    pub notices: Vec<Notice>,
    /// The last request.
    pub manifest: Option<Manifest>,
    /// How full the window is after the turn.
    pub fill: Option<Fill>,
}

/// How full a session's window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// What the session's messages, system prompt and tools measure.
    pub used: Tokens,
    /// Where a request must end: the window without what is kept free for the answer.
    pub limit: Tokens,
    /// The window.
    pub window: Tokens,
}

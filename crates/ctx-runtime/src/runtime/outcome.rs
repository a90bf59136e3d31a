//! What a turn is given, and what it gives back.

use ctx_core::{Block, Manifest, Message, Role, Tokens, Usage};

use super::Notice;

/// What a user says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input(Message);

impl Input {
    /// The message.
    #[must_use]
    pub fn message(&self) -> &Message {
        &self.0
    }

    pub(crate) fn into_message(self) -> Message {
        self.0
    }
}

impl From<&str> for Input {
    fn from(text: &str) -> Self {
        Self(Message::text(Role::User, text))
    }
}

impl From<String> for Input {
    fn from(text: String) -> Self {
        Self(Message::text(Role::User, text))
    }
}

/// Text and images.
impl From<Vec<Block>> for Input {
    fn from(blocks: Vec<Block>) -> Self {
        Self(Message::new(Role::User, blocks))
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

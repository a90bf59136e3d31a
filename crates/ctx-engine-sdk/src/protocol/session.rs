//! The engine's view of a session: its messages as rows, and the budget.

use serde::{Deserialize, Serialize};

use super::{Message, RawMessage, Result};

/// One message of the session, as the next request would contain it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Row {
    /// The id of the transcript entry. Plans name messages by it.
    pub id: String,
    /// The role: see [`Message::role`].
    pub role: String,
    /// Its size, in tokens.
    pub tokens: u64,
    /// Rows of one group are a tool call and its results: they stay together. Groups have no order.
    pub group: u64,
    /// Whether the row is protected: the system prompt, pinned messages, a summary that replaces
    /// history, the user's newest message, the running tool call.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub keep: bool,
    /// Whether it is in no transcript, because an engine or a layer inserted it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub inserted: bool,
    /// The message, if the engine requested contents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<RawMessage>,
}

impl Row {
    /// Parses the message.
    ///
    /// # Errors
    ///
    /// [`BadRequest`](super::ErrorKind::BadRequest) if it is not a message.
    pub fn parsed(&self) -> Result<Option<Message>> {
        self.message.as_ref().map(RawMessage::read).transpose()
    }

    /// Returns all text of the message; empty if the engine did not request contents.
    #[must_use]
    pub fn text(&self) -> String {
        let message = self.parsed().ok().flatten();
        message.map(|message| message.plain_text()).unwrap_or_default()
    }
}

/// The budget of a request, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Budget {
    /// The model's context window.
    pub window: u64,
    /// The maximum for all rows together: the window minus the reserve for the answer, the system
    /// prompt, the tool schemas and the pending input.
    pub messages: u64,
}

/// The time of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Turn {
    /// The current time, in milliseconds since 1970. It is fixed in replays and tests.
    pub now: i64,
    /// The time of the session's last request, and so of the last use of the provider's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_request: Option<i64>,
}

/// The changes of a session since the last update. Applied in the order of the fields: a removed
/// row may be added again at the end.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Update {
    /// Whether to discard all rows first.
    pub reset: bool,
    /// Rows that were removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<String>,
    /// Rows whose content, `keep` or `group` changed. A row without a message keeps the message it
    /// had.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<Row>,
    /// Rows added at the end, oldest first. An ingested row is sent without its message.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<Row>,
    /// The number of rows after the update.
    pub rows: usize,
}

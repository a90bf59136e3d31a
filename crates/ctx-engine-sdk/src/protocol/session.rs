//! What an engine is told of a session: its messages as rows, and the budget.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Message, Result};

/// One message of the session, as it would go out now.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Row {
    /// The entry of the transcript. Plans name messages by it.
    pub id: String,
    /// Who speaks: see [`Message::role`].
    pub role: String,
    /// What it takes of the budget, in tokens.
    pub tokens: u64,
    /// Rows of one group are a tool call and its results: they go together. Groups have no order.
    pub group: u64,
    /// Whether it must stay: the system prompt, what the user pinned, a summary that stands for
    /// history, the newest message of the user, the tool call in progress.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub keep: bool,
    /// Whether it stands in no transcript: an engine or a layer added it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub inserted: bool,
    /// The message, if the engine asked for contents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Box<RawValue>>,
}

impl Row {
    /// The message, parsed.
    ///
    /// # Errors
    ///
    /// [`BadRequest`](super::ErrorKind::BadRequest) if it is none.
    pub fn parsed(&self) -> Result<Option<Message>> {
        let message = self.message.as_ref().map(|json| serde_json::from_str(json.get()));
        Ok(message.transpose()?)
    }

    /// All text in it; nothing where the engine asked for no contents.
    #[must_use]
    pub fn text(&self) -> String {
        let message = self.parsed().ok().flatten();
        message.map(|message| message.plain_text()).unwrap_or_default()
    }
}

/// How much room there is, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Budget {
    /// The model's window.
    pub window: u64,
    /// What all rows together may measure: the window without what is kept free for the answer,
    /// the system prompt, the tool schemas and the pending input.
    pub messages: u64,
}

/// When a call is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Turn {
    /// The time, in milliseconds since 1970. It stands still in replays and tests.
    pub now: i64,
    /// When the session's last request was made, and so when the provider's cache was last used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_request: Option<i64>,
}

/// What is new in a session since the engine was last told, to be taken in in the order of the
/// fields: a row that is gone may come again at the end.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Update {
    /// Whether to forget all rows first.
    pub reset: bool,
    /// Rows that go out no more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<String>,
    /// Rows that go out in another form, or whose `keep` or `group` changed. One that comes without
    /// its message has the one it had.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<Row>,
    /// Rows at the end, oldest first. One that was ingested comes without its message.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<Row>,
    /// How many rows there are then.
    pub rows: usize,
}

//! The request is about to be made: what shall go out?

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Budget, Message, Turn, Update};

/// A request is about to be made.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Assemble {
    /// The session.
    pub session_id: String,
    /// What is new in it.
    pub update: Update,
    /// The room there is.
    pub budget: Budget,
    /// When.
    pub turn: Turn,
    /// The user's newest words, where they are not in the session yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

/// What shall go out: a plan, or all messages. With neither everything goes out as it is.
///
/// Whatever the answer, the host keeps its rules: a tool call and its results stay together, rows
/// with `keep` stay, and the request fits its window. An answer that would break them is rejected.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Assembled {
    /// Edits of what there is.
    #[serde(flatten)]
    pub plan: Plan,
    /// All that shall go out, in order. What is not named does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<Outgoing>>,
    /// Text to be added to the system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt_addition: Option<String>,
    /// What the rows measure then, as far as the engine knows. The host counts for itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_tokens: Option<u64>,
}

impl From<Plan> for Assembled {
    fn from(plan: Plan) -> Self {
        Self { plan, ..Self::default() }
    }
}

/// Edits, by id. They are carried out in the order of the fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Plan {
    /// Keep the last so many rows and drop the older ones. The host keeps what must stay, and does
    /// not cut between a tool call and its results: rather more is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_last: Option<usize>,
    /// Rows that shall not go out. Give whole groups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drop: Vec<String>,
    /// Rows that shall go out in another form.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replace: Vec<Replacement>,
    /// Messages to be added.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub insert: Vec<Insertion>,
    /// Rows that must stay from now on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pin: Vec<String>,
    /// Why, for the manifest of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Plan {
    /// Keeps the last rows.
    #[must_use]
    pub fn keep_last(rows: usize) -> Self {
        Self { keep_last: Some(rows), ..Self::default() }
    }

    /// Drops rows.
    #[must_use]
    pub fn drop(ids: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { drop: ids.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Says why.
    #[must_use]
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Whether it changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keep_last.is_none()
            && self.drop.is_empty()
            && self.replace.is_empty()
            && self.insert.is_empty()
            && self.pin.is_empty()
    }
}

/// Another form of a row: give `text` or `message`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Replacement {
    /// The row.
    pub id: String,
    /// A text in the place of its own, or of its tool result's. Calls, and what ties a result to
    /// its call, stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// A whole message of the same role, making and answering the same calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Message>,
}

/// A message to be added. It holds neither tool calls nor results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Insertion {
    /// The name it will have as a row. One that is taken is refused.
    pub id: String,
    /// The row it shall stand before; at the end where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Who speaks. Default: `user`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// What is said.
    pub text: String,
}

/// One message of a full answer: a row by its id, in the form it has or in the one given; or a new
/// message, with an id of its own.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Outgoing {
    /// The row, or a new message's name.
    pub id: String,
    /// Its form, where that is not the row's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Box<RawValue>>,
}

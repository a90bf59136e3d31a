//! Selecting the messages of the next request.

use serde::{Deserialize, Serialize, Serializer};

use super::{Budget, Message, RawMessage, Turn, Update};

/// Parameters of `assemble`: a request is about to be sent.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Assemble {
    /// The session.
    pub session_id: String,
    /// What changed in the session.
    pub update: Update,
    /// The token budget.
    pub budget: Budget,
    /// The time of the call.
    pub turn: Turn,
    /// The user's newest message, if it is not in the session yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

/// The content of the request: a plan, or the full list of messages. With neither, everything is
/// sent unchanged.
///
/// The host always enforces its rules: a tool call and its results stay together, rows with `keep`
/// stay, and the request fits its window. An answer that would break them is rejected.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Assembled {
    /// Edits of the current rows.
    #[serde(flatten)]
    pub plan: Plan,
    /// The full list of messages, in order. Rows that are not named are dropped.
    pub messages: Option<Vec<OutgoingMessage>>,
    /// Text to append to the system prompt.
    pub system_prompt_addition: Option<String>,
    /// The engine's estimate of the tokens of all rows after the edits. The host counts for itself.
    pub estimated_tokens: Option<u64>,
}

// A derived `flatten` does not know the number of fields, so that MessagePack would be buffered.
impl Serialize for Assembled {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Fields<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            keep_last: Option<usize>,
            #[serde(skip_serializing_if = "Vec::is_empty")]
            drop: &'a Vec<String>,
            #[serde(skip_serializing_if = "Vec::is_empty")]
            replace: &'a Vec<Replacement>,
            #[serde(skip_serializing_if = "Vec::is_empty")]
            insert: &'a Vec<Insertion>,
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pin: &'a Vec<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            reason: &'a Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            messages: &'a Option<Vec<OutgoingMessage>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            system_prompt_addition: &'a Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            estimated_tokens: Option<u64>,
        }
        let Self { plan, messages, system_prompt_addition, estimated_tokens } = self;
        let Plan { keep_last, drop, replace, insert, pin, reason } = plan;
        let (keep_last, estimated_tokens) = (*keep_last, *estimated_tokens);
        Fields {
            keep_last,
            drop,
            replace,
            insert,
            pin,
            reason,
            messages,
            system_prompt_addition,
            estimated_tokens,
        }
        .serialize(serializer)
    }
}

impl From<Plan> for Assembled {
    fn from(plan: Plan) -> Self {
        Self { plan, ..Self::default() }
    }
}

/// Edits, by id. They are applied in the order of the fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[must_use]
pub struct Plan {
    /// Keep this number of rows from the end and drop the older ones. The host keeps protected
    /// rows, and does not cut between a tool call and its results: it keeps more rows instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_last: Option<usize>,
    /// Rows to drop. Give whole groups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drop: Vec<String>,
    /// Rows to send in another form.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replace: Vec<Replacement>,
    /// Messages to insert.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub insert: Vec<Insertion>,
    /// Rows to protect from now on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pin: Vec<String>,
    /// The reason, for the manifest of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Plan {
    /// Keeps the last `rows` rows.
    pub fn keep_last(rows: usize) -> Self {
        Self { keep_last: Some(rows), ..Self::default() }
    }

    /// Drops rows.
    pub fn drop(ids: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { drop: ids.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Sets the reason.
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Whether the plan changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keep_last.is_none()
            && self.drop.is_empty()
            && self.replace.is_empty()
            && self.insert.is_empty()
            && self.pin.is_empty()
    }
}

/// A replacement for a row: give `text` or `message`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Replacement {
    /// The row.
    pub id: String,
    /// New text for the message or for its tool result. Tool calls, and the id that ties a result
    /// to its call, stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// A whole message with the same role, tool calls and tool results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Message>,
}

/// A message to insert. It contains neither tool calls nor results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Insertion {
    /// Its id as a row. An id in use is rejected.
    pub id: String,
    /// The row to insert it before; at the end if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The role. Default: `user`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The text.
    pub text: String,
}

/// One message of a full list: a row by its id, unchanged or with the given content; or a new
/// message, with a new id.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OutgoingMessage {
    /// The id of the row, or of the new message.
    pub id: String,
    /// The content, if it differs from the row's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<RawMessage>,
}

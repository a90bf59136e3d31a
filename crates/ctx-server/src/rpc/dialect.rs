//! Messages in the host's format.

use std::sync::Arc;

use ctx_core::{Error, ErrorKind, Message, RawJson, Result};
use ctx_dialect::json::Object;
use ctx_dialect::{anthropic, openai_chat, pi};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The format of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Dialect {
    /// pi's `AgentMessage`.
    #[default]
    Pi,
    /// OpenAI Chat Completions.
    Openai,
    /// Anthropic Messages.
    Anthropic,
}

/// A message to send: its source text if unchanged, and the parsed message.
pub(super) struct SourcedMessage {
    pub(super) source: Option<Arc<str>>,
    pub(super) message: Arc<Message>,
}

/// A conversation in the host's format, and the leading system messages, if the dialect stores them
/// separately.
pub(super) type WrittenMessages = (Vec<RawJson>, Option<String>);

impl Dialect {
    /// Parses one message of a host's list.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] for an invalid message.
    pub(super) fn read(self, raw: &RawValue) -> Result<Message> {
        let is_message = Object::of(raw).is_some_and(|object| object.text("role").is_some());
        if !is_message {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "invalid message: expected an object with a role",
            )
            .hint("check the dialect that the session was opened with"));
        }
        Ok(match self {
            Self::Pi => pi::parse_raw(raw),
            Self::Openai => openai_chat::parse_raw(raw),
            Self::Anthropic => anthropic::parse_raw(raw),
        })
    }

    /// Writes a conversation that was received in the dialect `received`. Unchanged messages are
    /// written byte for byte, if the dialect is the same and writes each message separately.
    pub(super) fn write(self, received: Self, outgoing: &[SourcedMessage]) -> WrittenMessages {
        if self == received
            && let Some(messages) = self.write_each(outgoing)
        {
            return (messages, None);
        }
        let messages = outgoing.iter().map(|out| &*out.message);
        match self {
            Self::Pi => (messages.flat_map(pi::write).map(RawJson::from_text).collect(), None),
            Self::Openai => (openai_chat::write(messages), None),
            Self::Anthropic => {
                let written = anthropic::write(messages);
                (written.messages, written.system)
            }
        }
    }

    /// Writes each message separately, if each becomes exactly one message. For Anthropic, adjacent
    /// messages of one role are merged.
    fn write_each(self, outgoing: &[SourcedMessage]) -> Option<Vec<RawJson>> {
        let one = |out: &SourcedMessage| match &out.source {
            Some(source) => Some(RawJson::from_text(source.clone())),
            None => self.write_one(&out.message),
        };
        outgoing.iter().map(one).collect()
    }

    fn write_one(self, message: &Message) -> Option<RawJson> {
        let written: Vec<RawJson> = match self {
            Self::Pi => pi::write(message).into_iter().map(RawJson::from_text).collect(),
            Self::Openai => openai_chat::write([message]),
            Self::Anthropic => return None,
        };
        <[RawJson; 1]>::try_from(written).ok().map(|[json]| json)
    }
}

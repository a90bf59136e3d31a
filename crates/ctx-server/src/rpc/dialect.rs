//! Messages as the host has them.

use std::sync::Arc;

use ctx_core::{Error, ErrorKind, Message, RawJson, Result};
use ctx_dialect::json::Object;
use ctx_dialect::{anthropic, openai_chat, pi};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The shape of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Dialect {
    /// pi's `AgentMessage`.
    #[default]
    Pi,
    /// OpenAI's chat completions.
    Openai,
    /// Anthropic's messages.
    Anthropic,
}

/// One message on its way out: as it was told, where it goes out unchanged, and as it is.
pub(super) struct Outgoing {
    pub(super) told: Option<Arc<str>>,
    pub(super) message: Arc<Message>,
}

/// A conversation as the host takes it.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) messages: Vec<RawJson>,
    /// The system messages at the beginning, where the dialect has another place for them.
    pub(super) system: Option<String>,
}

impl Dialect {
    /// Reads one message of a host's list.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] for a value that is no message.
    pub(super) fn read(self, raw: &RawValue) -> Result<Message> {
        let is_message = Object::of(raw).is_some_and(|object| object.text("role").is_some());
        if !is_message {
            return Err(Error::new(ErrorKind::InvalidInput, "a message is an object with a role")
                .hint("see the format that the session was opened with"));
        }
        Ok(match self {
            Self::Pi => pi::parse_raw(raw),
            Self::Openai => openai_chat::parse_raw(raw),
            Self::Anthropic => anthropic::parse_raw(raw),
        })
    }

    /// Writes a conversation whose messages were told in the dialect `told`. What goes out as it was
    /// told goes out byte for byte, where the dialect lets each message stand alone.
    pub(super) fn write(self, told: Self, outgoing: &[Outgoing]) -> Written {
        if self == told
            && let Some(messages) = self.write_each(outgoing)
        {
            return Written { messages, system: None };
        }
        let messages = outgoing.iter().map(|out| &*out.message);
        match self {
            Self::Pi => {
                let messages = messages.flat_map(pi::write).map(RawJson::from_text).collect();
                Written { messages, system: None }
            }
            Self::Openai => Written { messages: openai_chat::write(messages), system: None },
            Self::Anthropic => {
                let written = anthropic::write(messages);
                Written { messages: written.messages, system: written.system }
            }
        }
    }

    /// Each message on its own, if each becomes exactly one. Anthropic's never do: neighbours of one
    /// role are one message there.
    fn write_each(self, outgoing: &[Outgoing]) -> Option<Vec<RawJson>> {
        let one = |out: &Outgoing| match &out.told {
            Some(told) => Some(RawJson::from_text(told.clone())),
            None => self.write_one(&out.message),
        };
        outgoing.iter().map(one).collect()
    }

    fn write_one(self, message: &Message) -> Option<RawJson> {
        match self {
            Self::Pi => match <[String; 1]>::try_from(pi::write(message)) {
                Ok([json]) => Some(RawJson::from_text(json)),
                Err(_) => None,
            },
            Self::Openai => match <[RawJson; 1]>::try_from(openai_chat::write([message])) {
                Ok([json]) => Some(json),
                Err(_) => None,
            },
            Self::Anthropic => None,
        }
    }
}

//! Messages in the host's format.

use std::sync::Arc;

use ctx_core::{Error, ErrorKind, Message, RawJson, Result};
use ctx_dialect::json::Object;
use ctx_dialect::wire::Protocol;
use ctx_dialect::{ai_sdk, anthropic, gemini, openai_chat, openai_responses, pi};
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
    /// OpenAI Responses: input items.
    Responses,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini contents.
    Gemini,
    /// The Vercel AI SDK: `ModelMessage`.
    #[serde(rename = "ai-sdk")]
    AiSdk,
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
    /// All formats, by name.
    pub(super) const NAMES: [&'static str; 6] =
        ["pi", "openai", "responses", "anthropic", "gemini", "ai-sdk"];

    /// Returns the API whose requests contain such messages.
    pub(super) fn protocol(self) -> Option<Protocol> {
        match self {
            Self::Openai => Some(Protocol::Chat),
            Self::Responses => Some(Protocol::Responses),
            Self::Anthropic => Some(Protocol::Messages),
            Self::Gemini => Some(Protocol::Gemini),
            Self::Pi | Self::AiSdk => None,
        }
    }

    /// Checks the form of a message of a host's list.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if it is not a message.
    pub(super) fn check(self, raw: &RawValue) -> Result<()> {
        let object = Object::of(raw);
        let (is_message, expected) = match self {
            Self::Responses => (object.is_some(), "invalid item: expected an object"),
            Self::Gemini => (
                object.is_some_and(|object| object.has("parts")),
                "invalid content: expected an object with parts",
            ),
            _ => (
                object.is_some_and(|object| object.text("role").is_some()),
                "invalid message: expected an object with a role",
            ),
        };
        match is_message {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::InvalidInput, expected)
                .hint("check the format that the session was opened with")),
        }
    }

    /// Parses one message of a host's list.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] for an invalid message, and for a format whose messages cannot be
    /// read one by one.
    pub(super) fn read(self, raw: &RawValue) -> Result<Message> {
        self.check(raw)?;
        match self {
            Self::Pi => Ok(pi::parse_raw(raw)),
            Self::Openai => Ok(openai_chat::parse_raw(raw)),
            Self::Anthropic => Ok(anthropic::parse_raw(raw)),
            Self::AiSdk => Ok(ai_sdk::parse_raw(raw)),
            Self::Responses | Self::Gemini => Err(Error::new(
                ErrorKind::InvalidInput,
                "messages in this format are only understood as a whole list",
            )
            .hint("call `fit` instead of `append`, `sync` and `assemble`")),
        }
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
            Self::Responses => (openai_responses::write(messages), None),
            Self::Anthropic => {
                let written = anthropic::write(messages);
                (written.messages, written.system)
            }
            Self::Gemini => {
                let written = gemini::write(messages);
                let text = |json: RawJson| Some(gemini::parse(json.as_str()).ok()?.plain_text());
                (written.contents, written.system.and_then(text))
            }
            Self::AiSdk => (messages.flat_map(|m| ai_sdk::write(m, None)).collect(), None),
        }
    }

    /// Writes each message separately, if each becomes exactly one message. For Anthropic, adjacent
    /// messages of one role are merged.
    fn write_each(self, outgoing: &[SourcedMessage]) -> Option<Vec<RawJson>> {
        let one = |out: &SourcedMessage| match &out.source {
            Some(source) => Some(RawJson::from_text(source.clone())),
            None => {
                let written = self.write_changed(&out.message, None)?;
                <[RawJson; 1]>::try_from(written).ok().map(|[json]| json)
            }
        };
        outgoing.iter().map(one).collect()
    }

    /// Writes a message that replaces the one with the text `of`; `None` if the dialect cannot write
    /// messages separately.
    pub(super) fn write_changed(self, message: &Message, of: Option<&str>) -> Option<Vec<RawJson>> {
        match self {
            Self::Pi => Some(pi::write(message).into_iter().map(RawJson::from_text).collect()),
            Self::Openai => Some(openai_chat::write([message])),
            Self::AiSdk => Some(ai_sdk::write(message, of)),
            Self::Anthropic | Self::Responses | Self::Gemini => None,
        }
    }
}

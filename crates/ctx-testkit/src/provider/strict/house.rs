//! Differences between providers with the same API.

use super::super::api::Api;
use super::super::words::Words;

/// The allowed call ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ids {
    /// Printable characters, up to this length.
    Printable(usize),
    /// Letters, digits, `_` and `-`, up to this length.
    Word(usize),
    /// Letters and digits, up to this length.
    Alphanumeric(usize),
    /// Letters and digits, of exactly this length.
    Exactly(usize),
}

impl Ids {
    /// Whether an id is allowed.
    pub fn takes(self, id: &str) -> bool {
        let plain = id.chars().all(|c| c.is_ascii_alphanumeric());
        let length = id.chars().count();
        match self {
            Self::Printable(most) => {
                (1..=most).contains(&length) && id.chars().all(|c| c.is_ascii_graphic())
            }
            Self::Word(most) => (1..=most).contains(&length) && super::is_word(id),
            Self::Alphanumeric(most) => plain && (1..=most).contains(&length),
            Self::Exactly(exactly) => plain && length == exactly,
        }
    }
}

/// Requirements of a provider that differ from other providers with the same API.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct House {
    /// The allowed call ids.
    pub ids: Ids,
    /// Whether an id may be used for one call only, in the whole conversation.
    pub ids_once: bool,
    /// Whether messages may have a `name`.
    pub names: bool,
    /// Whether user and assistant messages must alternate, after the system message.
    pub alternates: bool,
    /// Whether the first message must be from the user.
    pub user_first: bool,
    /// Whether the last message must not be from the assistant.
    pub user_last: bool,
    /// Whether an assistant message is required between tool results and a user message.
    pub model_after_tools: bool,
    /// Whether images are accepted.
    pub images: bool,
    /// Whether reasoning is accepted in a separate field.
    pub reasoning: bool,
    /// Whether every text must contain more than white space.
    pub filled: bool,
    /// Whether the arguments of a call must be an object.
    pub objects: bool,
}

impl House {
    /// Returns the provider of an API.
    pub fn of(api: Api) -> Self {
        let open = Self {
            ids: Ids::Printable(64),
            ids_once: true,
            names: true,
            alternates: false,
            user_first: false,
            user_last: false,
            model_after_tools: false,
            images: true,
            reasoning: true,
            filled: false,
            objects: false,
        };
        match api {
            Api::Chat => Self { ids: Ids::Printable(40), ids_once: false, ..open },
            Api::Messages => Self { ids: Ids::Word(64), user_first: true, ..open },
            _ => open,
        }
    }

    /// Mistral's own API.
    pub fn mistral() -> Self {
        Self {
            ids: Ids::Exactly(9),
            alternates: true,
            user_first: true,
            user_last: true,
            model_after_tools: true,
            reasoning: false,
            ..Self::of(Api::Chat)
        }
    }

    /// Returns the provider whose overflow wording is used, if more than its wording is known.
    pub(in super::super) fn of_words(api: Api, words: Option<Words>) -> Self {
        match (api, words) {
            (Api::Chat, Some(Words::Mistral)) => Self::mistral(),
            (Api::Messages, Some(Words::Bedrock)) => Self { alternates: true, ..Self::of(api) },
            _ => Self::of(api),
        }
    }
}

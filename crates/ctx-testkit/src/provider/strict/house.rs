//! How the houses differ that speak one API.

use super::super::api::Api;
use super::super::words::Words;

/// The alphabet of call ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ids {
    /// Any printable characters, no more than so many.
    Printable(usize),
    /// Letters, digits, `_` and `-`, no more than so many.
    Word(usize),
    /// Letters and digits, no more than so many.
    Alphanumeric(usize),
    /// Letters and digits, exactly so many.
    Exactly(usize),
}

impl Ids {
    /// Whether an id is one of these.
    #[must_use]
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

/// What a provider minds that others with the same API do not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct House {
    /// The alphabet of call ids.
    pub ids: Ids,
    /// Whether an id may name one call only, in all of a conversation.
    pub ids_once: bool,
    /// Whether messages may name their speakers.
    pub names: bool,
    /// Whether user and model must speak in turn, the system before them.
    pub alternates: bool,
    /// Whether the user must be the first to speak.
    pub user_first: bool,
    /// Whether the model must not be the last to speak.
    pub user_last: bool,
    /// Whether the model must speak between its tools and the user.
    pub model_after_tools: bool,
    /// Whether pictures are taken.
    pub images: bool,
    /// Whether reasoning is taken back in a field of its own.
    pub reasoning: bool,
    /// Whether everything said must be more than white space.
    pub filled: bool,
    /// Whether the arguments of a call must be an object.
    pub objects: bool,
}

impl House {
    /// The house that an API is from.
    #[must_use]
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
    #[must_use]
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

    /// The house whose words an overflow is put in, where it is known for more than words.
    pub(in super::super) fn of_words(api: Api, words: Option<Words>) -> Self {
        match (api, words) {
            (Api::Chat, Some(Words::Mistral)) => Self::mistral(),
            (Api::Messages, Some(Words::Bedrock)) => Self { alternates: true, ..Self::of(api) },
            _ => Self::of(api),
        }
    }
}

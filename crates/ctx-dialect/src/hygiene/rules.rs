//! The rules of each provider.

use super::CallIdFormat;

/// Which earlier reasoning of a model is sent back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Thoughts {
    /// None.
    None,
    /// Signed (Anthropic) or encrypted (OpenAI Responses) reasoning.
    Proved,
    /// Reasoning from a named field, in the same field (many Chat Completions servers).
    Named,
    /// As `Named`, but only since the last user message (DeepSeek).
    NamedThisTurn,
}

/// What a provider accepts, which may be less than a transcript contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The provider, as named in transcripts.
    pub provider: String,
    /// The model, as named in transcripts.
    pub model: String,
    /// The API family, as named in transcripts.
    pub api: String,
    /// The alphabet of call ids.
    pub ids: CallIdFormat,
    /// Which earlier reasoning is sent back.
    pub thoughts: Thoughts,
    /// Whether the model accepts images; otherwise text replaces them.
    pub images: bool,
    /// Whether messages may have a `name`, and whether the developer role is accepted.
    pub names: bool,
    /// Whether adjacent messages of one role are merged, and system messages come only first.
    pub merges: bool,
    /// Whether the first message after the system messages must be the user's.
    pub user_first: bool,
    /// Whether the last message must not be the model's.
    pub model_not_last: bool,
    /// Whether a model message is required between tool results and a user message.
    pub model_after_tools: bool,
}

/// Mistral's model families, which keep its rules with any provider.
const MISTRAL: [&str; 8] =
    ["mistral", "mixtral", "ministral", "magistral", "codestral", "devstral", "pixtral", "voxtral"];

impl Rules {
    /// Returns the rules of a model, by the names used in transcripts: the API family, for example
    /// `openai-completions`, the provider and the model.
    #[must_use]
    pub fn of(api: &str, provider: &str, model: &str) -> Self {
        let rules = Self {
            provider: provider.to_owned(),
            model: model.to_owned(),
            api: api.to_owned(),
            ids: CallIdFormat::Printable { most: 64 },
            thoughts: Thoughts::Named,
            images: true,
            names: false,
            merges: false,
            user_first: false,
            model_not_last: false,
            model_after_tools: false,
        };
        match api {
            "anthropic-messages" => Self {
                ids: CallIdFormat::Word { most: 64 },
                thoughts: Thoughts::Proved,
                user_first: true,
                // Newer models refuse to continue a prefilled answer.
                model_not_last: true,
                ..rules
            },
            "openai-responses" => Self { thoughts: Thoughts::Proved, names: true, ..rules },
            _ => rules.of_completions(),
        }
    }

    fn of_completions(self) -> Self {
        // OpenAI accepts ids of 40 characters here, and of 64 in its newer API.
        let rules = Self { ids: CallIdFormat::Printable { most: 40 }, ..self };
        let provider = rules.provider.to_ascii_lowercase();
        let model = rules.model.to_ascii_lowercase();
        let is_mistral = MISTRAL.iter().any(|family| model.contains(family));
        if provider == "mistral" || is_mistral {
            return Self {
                ids: CallIdFormat::Letters { exactly: 9 },
                thoughts: Thoughts::None,
                model_not_last: true,
                model_after_tools: true,
                ..rules.in_turn()
            };
        }
        if provider.starts_with("google") || model.contains("gemini") {
            let ids = CallIdFormat::Alphanumeric { most: 40 };
            return Self { ids, thoughts: Thoughts::None, ..rules.in_turn() };
        }
        if provider == "deepseek" {
            return Self { thoughts: Thoughts::NamedThisTurn, images: false, ..rules };
        }
        if provider == "openai" {
            return Self { thoughts: Thoughts::None, names: true, ..rules };
        }
        if model.contains("claude") {
            return Self { ids: CallIdFormat::Word { most: 40 }, ..rules };
        }
        rules
    }

    /// Requires alternating user and model messages, user first, after any system messages.
    #[must_use]
    pub fn in_turn(self) -> Self {
        Self { merges: true, user_first: true, ..self }
    }
}

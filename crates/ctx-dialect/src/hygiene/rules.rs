//! What each provider accepts.

use super::Ids;

/// What of a model's earlier reasoning it takes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Thoughts {
    /// None.
    None,
    /// What it signed (Anthropic) or sealed (OpenAI responses).
    Proved,
    /// What came in a field, in that field (chat completions of many).
    Named,
    /// As `Named`, but only since the user spoke last (DeepSeek).
    NamedThisTurn,
}

/// What a provider accepts, which may be less than what a transcript holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Who is asked, as transcripts name it.
    pub provider: String,
    /// Which model, as transcripts name it.
    pub model: String,
    /// In which API family, as transcripts name it.
    pub api: String,
    /// The alphabet of call ids.
    pub ids: Ids,
    /// What goes back of earlier reasoning.
    pub thoughts: Thoughts,
    /// Whether the model sees images. Where not, a word stands in their place.
    pub images: bool,
    /// Whether messages may name their speakers, and the system be called developer.
    pub names: bool,
    /// Whether neighbours of one role become one message, and system messages stand at the
    /// beginning only.
    pub merges: bool,
    /// Whether the first to speak, after the system, must be the user.
    pub user_first: bool,
    /// Whether the last to speak must not be the model.
    pub model_not_last: bool,
    /// Whether the model must speak between its tools and the user.
    pub model_after_tools: bool,
}

/// The families whose models are Mistral's, and keep its rules wherever they are served.
const MISTRAL: [&str; 8] =
    ["mistral", "mixtral", "ministral", "magistral", "codestral", "devstral", "pixtral", "voxtral"];

impl Rules {
    /// The rules of a model, by the names that transcripts use: the API family, for example
    /// `openai-completions`, the provider and the model.
    #[must_use]
    pub fn of(api: &str, provider: &str, model: &str) -> Self {
        let rules = Self {
            provider: provider.to_owned(),
            model: model.to_owned(),
            api: api.to_owned(),
            ids: Ids::Printable { most: 64 },
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
                ids: Ids::Word { most: 64 },
                thoughts: Thoughts::Proved,
                user_first: true,
                // Newer models refuse to go on from words that are put into their mouth.
                model_not_last: true,
                ..rules
            },
            "openai-responses" => Self { thoughts: Thoughts::Proved, names: true, ..rules },
            _ => rules.of_completions(),
        }
    }

    fn of_completions(self) -> Self {
        // OpenAI takes ids of forty characters here, of sixty-four in its newer API.
        let rules = Self { ids: Ids::Printable { most: 40 }, ..self };
        let provider = rules.provider.to_ascii_lowercase();
        let model = rules.model.to_ascii_lowercase();
        let is_mistral = MISTRAL.iter().any(|family| model.contains(family));
        if provider == "mistral" || is_mistral {
            return Self {
                ids: Ids::Letters { exactly: 9 },
                thoughts: Thoughts::None,
                model_not_last: true,
                model_after_tools: true,
                ..rules.in_turn()
            };
        }
        if provider.starts_with("google") || model.contains("gemini") {
            let ids = Ids::Alphanumeric { most: 40 };
            return Self { ids, thoughts: Thoughts::None, ..rules.in_turn() };
        }
        if provider == "deepseek" {
            return Self { thoughts: Thoughts::NamedThisTurn, images: false, ..rules };
        }
        if provider == "openai" {
            return Self { thoughts: Thoughts::None, names: true, ..rules };
        }
        if model.contains("claude") {
            return Self { ids: Ids::Word { most: 40 }, ..rules };
        }
        rules
    }

    /// With user and model speaking in turn, the user first, and the system only before them.
    #[must_use]
    pub fn in_turn(self) -> Self {
        Self { merges: true, user_first: true, ..self }
    }
}

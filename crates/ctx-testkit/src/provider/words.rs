//! Overflow errors of real providers.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::api::Api;

/// The provider whose wording an overflow has. Models behind a compatible API use OpenAI's protocol
/// but have error texts of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
#[allow(missing_docs)] // the variants are names of providers and servers
pub enum Words {
    OpenaiChat,
    OpenaiResponses,
    Anthropic,
    Gemini,
    Groq,
    Mistral,
    Xai,
    Deepseek,
    Cohere,
    Openrouter,
    Bedrock,
    Copilot,
    Moonshot,
    Minimax,
    Cerebras,
    TogetherTgi,
    LlamaCpp,
    Vllm,
    LmStudio,
    Ollama,
}

/// How a provider refuses a prompt that is too long.
#[derive(Deserialize)]
struct Refusal {
    status: u16,
    body: String,
    /// The body if the prompt fits alone, but not together with the requested answer.
    answer_body: Option<String>,
}

static REFUSALS: LazyLock<BTreeMap<Words, Refusal>> = LazyLock::new(|| {
    let data = include_str!("../../data/overflows.toml");
    toml::from_str(data).expect("data/overflows.toml has a table for each provider")
});

impl Words {
    /// Returns all providers.
    pub fn all() -> impl Iterator<Item = Self> {
        REFUSALS.keys().copied()
    }

    /// Returns the default wording of an API.
    pub fn of(api: Api) -> Self {
        match api {
            Api::Responses => Self::OpenaiResponses,
            Api::Messages | Api::CountTokens => Self::Anthropic,
            Api::Gemini | Api::GeminiCount => Self::Gemini,
            Api::OllamaChat | Api::OllamaEmbed => Self::Ollama,
            _ => Self::OpenaiChat,
        }
    }

    /// Returns HTTP status and body for a prompt of `prompt` tokens, with `answer` requested
    /// tokens, in a window of `window`.
    pub fn overflow(self, prompt: u64, answer: u64, window: u64) -> (u16, String) {
        let Some(refusal) = REFUSALS.get(&self) else { return (400, String::new()) };
        let of_answer = refusal.answer_body.as_ref().filter(|_| prompt <= window);
        let body = of_answer.unwrap_or(&refusal.body);
        let all = prompt.saturating_add(answer);
        let numbers = [
            ("$prompt", prompt),
            ("$answer", answer),
            ("$all", all),
            ("$window", window),
            ("$over", all.saturating_sub(window)),
        ];
        let filled = numbers
            .iter()
            .fold(body.clone(), |body, (name, number)| body.replace(name, &number.to_string()));
        (refusal.status, filled)
    }
}

//! The supported wire protocols, and their paths.

use serde::{Deserialize, Serialize};

pub(super) mod anthropic;
pub(super) mod chat;
pub(super) mod embeddings;
pub(super) mod gemini;
pub(super) mod ollama;
pub(super) mod responses;

/// The API of a request, determined from its method and the end of its path. The beginning of the
/// path is ignored, so that any base URL works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Api {
    /// `POST .../chat/completions`: OpenAI and compatible providers.
    Chat,
    /// `POST .../responses`: OpenAI.
    Responses,
    /// `POST .../messages`: Anthropic.
    Messages,
    /// `POST .../models/M:generateContent` and `:streamGenerateContent`: Gemini.
    Gemini,
    /// `POST .../models/M:countTokens`: Gemini.
    GeminiCount,
    /// `POST .../api/chat`: Ollama.
    OllamaChat,
    /// `POST .../messages/count_tokens`: Anthropic.
    CountTokens,
    /// `POST .../embeddings`: OpenAI and compatible providers.
    Embeddings,
    /// `POST .../api/embed`: Ollama.
    OllamaEmbed,
    /// `GET .../models`.
    Models,
}

impl Api {
    /// Returns the API of a method and path.
    pub fn of(method: &str, path: &str) -> Option<Self> {
        let path = path.trim_end_matches('/');
        let ends = [
            ("POST", "/chat/completions", Self::Chat),
            ("POST", "/responses", Self::Responses),
            ("POST", "/messages", Self::Messages),
            ("POST", ":generateContent", Self::Gemini),
            ("POST", ":streamGenerateContent", Self::Gemini),
            ("POST", ":countTokens", Self::GeminiCount),
            ("POST", "/api/chat", Self::OllamaChat),
            ("POST", "/messages/count_tokens", Self::CountTokens),
            ("POST", "/embeddings", Self::Embeddings),
            ("POST", "/api/embed", Self::OllamaEmbed),
            ("GET", "/models", Self::Models),
        ];
        ends.iter().find(|(m, end, _)| *m == method && path.ends_with(end)).map(|row| row.2)
    }

    /// Whether the model generates text. Only such requests take steps of a script, unless a step
    /// names another API.
    pub(super) fn is_completion(self) -> bool {
        matches!(
            self,
            Self::Chat | Self::Responses | Self::Messages | Self::Gemini | Self::OllamaChat
        )
    }

    /// Whether errors have Anthropic's format.
    pub(super) fn is_anthropic(self) -> bool {
        matches!(self, Self::Messages | Self::CountTokens)
    }

    /// Whether errors have Google's format.
    pub(super) fn is_google(self) -> bool {
        matches!(self, Self::Gemini | Self::GeminiCount)
    }

    /// Whether errors have Ollama's format.
    pub(super) fn is_ollama(self) -> bool {
        matches!(self, Self::OllamaChat | Self::OllamaEmbed)
    }
}

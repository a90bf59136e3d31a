//! Who says how large the window is.

use std::fmt;

use ctx_core::Tokens;
use serde::{Deserialize, Serialize};

/// Where the size of a window comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ContextWindowSource {
    /// The model's own metadata.
    Model,
    /// `models.providers.<provider>.models[]`.
    ModelsConfig,
    /// `agents.defaults.contextTokens`.
    AgentContextTokens,
    /// Nobody: the default.
    #[default]
    Default,
}

impl ContextWindowSource {
    /// The source of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Model, Self::ModelsConfig, Self::AgentContextTokens, Self::Default]
            .into_iter()
            .find(|source| source.name() == name)
    }

    /// The name, as it stands in messages and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::ModelsConfig => "modelsConfig",
            Self::AgentContextTokens => "agentContextTokens",
            Self::Default => "default",
        }
    }
}

impl fmt::Display for ContextWindowSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What each source says about the window. Zero counts as silence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Candidates {
    /// The model's own metadata: its native window.
    pub model: Option<Tokens>,
    /// `models.providers.<provider>.models[]`.
    pub models_config: Option<Tokens>,
    /// `agents.defaults.contextTokens`.
    pub agent_context_tokens: Option<Tokens>,
}

impl Candidates {
    /// Nobody says anything.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Sets what the model's metadata says.
    #[must_use]
    pub fn with_model(mut self, tokens: Tokens) -> Self {
        self.model = Some(tokens);
        self
    }

    /// What `source` says, if anything.
    #[must_use]
    pub fn of(&self, source: ContextWindowSource) -> Option<Tokens> {
        let said = match source {
            ContextWindowSource::Model => self.model,
            ContextWindowSource::ModelsConfig => self.models_config,
            ContextWindowSource::AgentContextTokens => self.agent_context_tokens,
            ContextWindowSource::Default => None,
        };
        said.filter(|tokens| *tokens > Tokens::ZERO)
    }
}

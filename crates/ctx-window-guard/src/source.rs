//! Sources of the window size.

use std::fmt;

use ctx_core::Tokens;
use serde::{Deserialize, Serialize};

/// Where the size of a context window comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ContextWindowSource {
    /// The model's own metadata.
    Model,
    /// `models.providers.<provider>.models[]`.
    ModelsConfig,
    /// `agents.defaults.contextTokens`.
    AgentContextTokens,
    /// The default, if no other source gives a size.
    #[default]
    Default,
}

impl ContextWindowSource {
    /// Returns the source with the given name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Model, Self::ModelsConfig, Self::AgentContextTokens, Self::Default]
            .into_iter()
            .find(|source| source.name() == name)
    }

    /// Returns the name used in messages and JSON.
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

/// The window size from each source. Zero counts as unset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowSizes {
    /// The model's own metadata: its native window.
    pub model: Option<Tokens>,
    /// `models.providers.<provider>.models[]`.
    pub models_config: Option<Tokens>,
    /// `agents.defaults.contextTokens`.
    pub agent_context_tokens: Option<Tokens>,
}

impl WindowSizes {
    /// Creates a value without any size.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Returns the size from `source`, if set.
    pub(crate) fn of(&self, source: ContextWindowSource) -> Option<Tokens> {
        let size = match source {
            ContextWindowSource::Model => self.model,
            ContextWindowSource::ModelsConfig => self.models_config,
            ContextWindowSource::AgentContextTokens => self.agent_context_tokens,
            ContextWindowSource::Default => None,
        };
        size.filter(|tokens| *tokens > Tokens::ZERO)
    }
}

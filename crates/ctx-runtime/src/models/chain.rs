//! Connects the models of a conversation, from names and configuration.

use std::sync::Arc;

use ctx_config::{Config, ConversationModels, Models};
use ctx_core::{ChatModel, Error, Result};
use ctx_model::{Client, ModelFacts, Timeouts, connect_models};

use super::providers::providers;

/// The models of a conversation.
pub struct ModelChain {
    /// The primary model, then its fallbacks.
    pub models: Vec<Arc<dyn ChatModel>>,
    /// The models that are unavailable, and why.
    pub missing: Vec<Error>,
    /// The models whose context window is unknown and assumed.
    pub assumed: Vec<ModelFacts>,
}

impl ModelChain {
    /// Connects the models in `names`, or else those in `agents.defaults.model`. Returns `None` if
    /// neither names any.
    ///
    /// # Errors
    ///
    /// The error of the first model if none is available; an invalid configuration.
    pub fn connect(config: &Config, names: &[String]) -> Result<Option<Self>> {
        let names = match names {
            [] => config.section::<ConversationModels>()?.chain(),
            names => names.to_vec(),
        };
        if names.is_empty() {
            return Ok(None);
        }
        let models: Models = config.section()?;
        let providers = providers(&models)?;
        let client = Arc::new(Client::new(Timeouts::conversation()));
        let (chain, mut missing) = connect_models(&names, &providers, &client);
        if chain.is_empty() && !missing.is_empty() {
            return Err(missing.swap_remove(0));
        }
        let facts = chain.iter().map(|model| model.facts());
        let assumed = facts.filter(|facts| facts.window_is_assumed).cloned().collect();
        let models = chain.into_iter().map(|model| model as Arc<dyn ChatModel>).collect();
        Ok(Some(Self { models, missing, assumed }))
    }
}

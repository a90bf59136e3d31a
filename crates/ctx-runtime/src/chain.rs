//! The models that a conversation is held with, from names and configuration.

use std::sync::Arc;

use ctx_core::{ChatModel, Error, Result};
use ctx_engine_registry::{Config, ConversationModels, Models};
use ctx_model::{Client, ModelFacts, Timeouts, connect_models};

use crate::writers::providers;

/// Models that a conversation may be held with.
pub struct Chain {
    /// The one that answers, then those that answer when it cannot.
    pub models: Vec<Arc<dyn ChatModel>>,
    /// Those that cannot be had, and why.
    pub missing: Vec<Error>,
    /// Those whose window nobody gave.
    pub assumed: Vec<ModelFacts>,
}

impl Chain {
    /// Connects the models that were `asked` for, or those that `agents.defaults.model` names.
    /// `None` where neither names any.
    ///
    /// # Errors
    ///
    /// What the first is missing for, where none of them can be had; and a configuration that makes
    /// no sense.
    pub fn connect(config: &Config, asked: &[String]) -> Result<Option<Self>> {
        let names = match asked {
            [] => config.section::<ConversationModels>()?.chain(),
            asked => asked.to_vec(),
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

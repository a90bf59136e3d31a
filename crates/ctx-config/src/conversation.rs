//! `agents.defaults.model`: the models of conversations.

use ctx_core::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::{ConfigSection, Section, invalid_value};

/// `agents.defaults.model`: the model of a conversation, and the fallback models.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ConversationModels {
    /// The model, as `provider/name`. Default: none; `ctx chat` then uses a model whose API key is
    /// set.
    pub primary: Option<String>,
    /// The models to use if it fails, in this order. Default: none.
    pub fallbacks: Vec<String>,
}

impl ConversationModels {
    /// Returns all of them, `primary` first.
    pub fn chain(&self) -> Vec<String> {
        self.primary.iter().chain(&self.fallbacks).cloned().collect()
    }
}

impl Section for ConversationModels {
    const PATH: &'static str = "agents.defaults.model";
    fn check(&self) -> Result<()> {
        let wrong = |key: &str, name: &str| {
            Err(invalid_value::<Self>(key, format!("{name:?}"), "a model, as provider/name"))
        };
        match (&self.primary, self.fallbacks.iter().position(|name| name.trim().is_empty())) {
            (Some(name), _) if name.trim().is_empty() => wrong("primary", name),
            (_, Some(at)) => wrong(&format!("fallbacks[{at}]"), &self.fallbacks[at]),
            _ => Ok(()),
        }
    }
}

inventory::submit! { ConfigSection::of::<ConversationModels>(env!("CARGO_PKG_NAME")) }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    #[test]
    fn a_chain_is_the_first_model_and_then_its_fallbacks() {
        let section = |text: &str| Config::parse(text)?.section::<ConversationModels>();
        let two = "{ agents: { defaults: { model: { primary: 'a/b', fallbacks: ['c/d'] } } } }";
        assert_eq!(section(two).unwrap().chain(), ["a/b", "c/d"]);
        assert_eq!(section("{}").unwrap().chain(), [""; 0]);
        for (wrong, key) in
            [("primary: ' '", "model.primary"), ("fallbacks: ['a', '']", "model.fallbacks[1]")]
        {
            let text = format!("{{ agents: {{ defaults: {{ model: {{ {wrong} }} }} }} }}");
            let error = section(&text).unwrap_err();
            assert!(error.to_string().contains(key), "{error}");
        }
    }
}

//! `agents.list`: what is said of single agents.

use ctx_core::{Profile, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ConfigSection, Section, wrong_value};

/// `agents.list`: agents that differ from `agents.defaults`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct AgentList(pub Vec<AgentConfig>);

/// One agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct AgentConfig {
    /// Its id: the name of its folder under `agents/`.
    pub id: String,
    /// The engine that decides what its models see. Default: `plugins.slots.contextEngine`.
    pub context_engine: Option<String>,
}

impl AgentList {
    /// What is said of an agent.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<&AgentConfig> {
        self.0.iter().find(|agent| agent.id == id)
    }
}

impl Section for AgentList {
    const PATH: &'static str = "agents.list";
    fn for_profile(_: Profile) -> Self {
        Self::default()
    }
    fn check(&self) -> Result<()> {
        let mut seen = std::collections::BTreeSet::new();
        for (at, agent) in self.0.iter().enumerate() {
            let wrong = |expected| {
                let (key, value) = (format!("[{at}].id"), format!("{:?}", agent.id));
                wrong_value::<Self>(&key, value, expected)
            };
            if agent.id.trim().is_empty() {
                return Err(wrong("the id of an agent"));
            }
            if !seen.insert(agent.id.as_str()) {
                return Err(wrong("an id that no other agent of the list has"));
            }
        }
        Ok(())
    }
}

inventory::submit! { ConfigSection::of::<AgentList>(env!("CARGO_PKG_NAME")) }

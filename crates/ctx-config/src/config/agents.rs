//! `agents.list`: the configuration of single agents.

use ctx_core::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{
    Config, ConfigSection, ReadSections, Section, invalid_value, lookup, merge, sections_sorted,
};
use crate::{Profile, strict};

/// The keys of `agents.defaults` that a row of `agents.list` may override.
const OF_DEFAULTS: [&str; 3] = ["contextTokens", "model", "contextPruning"];

/// `agents.list`: agents that differ from `agents.defaults`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct AgentList(pub Vec<AgentConfig>);

/// One agent. `profile`, `contextTokens`, `model` and `contextPruning` override the top-level
/// `profile` and `agents.defaults` for its sessions. The same keys in `subagents` apply to the
/// subagents that it starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AgentConfig {
    /// Its id: the name of its folder under `agents/`.
    pub id: String,
    /// The engine that assembles its requests. Default: `plugins.slots.contextEngine`.
    pub context_engine: Option<String>,
    /// Its overrides of `agents.defaults`, and its profile.
    #[serde(flatten)]
    #[schemars(skip)]
    pub differs: Map<String, Value>,
}

/// Adds the keys that a row shares with other sections to the schema of the whole configuration.
pub(super) fn extend(schema: &mut Value) {
    let defaults = "/properties/agents/properties/defaults/properties";
    let mut keys: Map<String, Value> = OF_DEFAULTS
        .iter()
        .filter_map(|key| {
            Some(((*key).to_owned(), schema.pointer(&format!("{defaults}/{key}"))?.clone()))
        })
        .collect();
    keys.extend(
        schema.pointer("/properties/profile").map(|name| ("profile".to_owned(), name.clone())),
    );
    let row = schema.pointer_mut("/properties/agents/properties/list/items");
    let Some(row) = row.and_then(Value::as_object_mut) else { return };
    row.insert("additionalProperties".to_owned(), false.into());
    if let Some(known) = row.get_mut("properties").and_then(Value::as_object_mut) {
        let mut subagents = strict::object();
        subagents["description"] =
            "The overrides for the subagents that it starts. Default: the agent's own.".into();
        subagents["properties"] = Value::Object(keys.clone());
        known.extend(keys);
        known.insert("subagents".to_owned(), subagents);
    }
}

impl Config {
    /// Returns the configuration of an agent: its row in `agents.list` overrides `agents.defaults`.
    pub fn for_agent(&self, agent: Option<&str>) -> Self {
        let mut config = self.clone();
        if let Some(row) = agent.and_then(|agent| self.row(agent)) {
            config.take_over(row);
        }
        config
    }

    /// Returns a configuration in which the agent's row has the overrides of its `subagents`. Call
    /// [`for_agent`](Self::for_agent) on it for the configuration of a subagent.
    pub fn for_subagents(&self, agent: &str) -> Self {
        let mut config = self.clone();
        config.read = ReadSections::default();
        let rows = config.explicit.pointer_mut("/agents/list").and_then(Value::as_array_mut);
        let mut rows = rows.into_iter().flatten();
        if let Some(row) = rows.find(|row| row["id"] == agent)
            && let Some(theirs) = row.get("subagents").cloned()
        {
            merge(row, &theirs);
        }
        config
    }

    fn row(&self, agent: &str) -> Option<&Value> {
        let rows = lookup(&self.explicit, "agents.list")?.as_array()?;
        rows.iter().find(|row| row["id"] == agent)
    }

    fn take_over(&mut self, row: &Value) {
        self.read = ReadSections::default();
        let profile = row.get("profile").and_then(Value::as_str).and_then(Profile::find);
        self.profile = profile.filter(|_| !self.is_profile_given).unwrap_or(self.profile);
        for key in OF_DEFAULTS {
            if let Some(value) = row.get(key) {
                merge(&mut self.explicit, &json!({"agents": {"defaults": {(key): value}}}));
            }
        }
    }

    /// Returns the errors in rows of `agents.list` that the schema does not detect.
    pub(super) fn faults_of_agents(&self) -> Vec<(String, Error)> {
        let mut faults = Vec::new();
        let rows = lookup(&self.explicit, "agents.list").and_then(Value::as_array);
        for (at, row) in rows.into_iter().flatten().enumerate() {
            for (key, row) in [("", Some(row)), (".subagents", row.get("subagents"))] {
                let mut config = self.clone();
                row.into_iter().for_each(|row| config.take_over(row));
                let key = format!("agents.list[{at}]{key}");
                let sections = sections_sorted().into_iter().filter(|section| {
                    let name = section.path.strip_prefix("agents.defaults.");
                    name.is_some_and(|name| OF_DEFAULTS.contains(&name))
                });
                let wrong = sections.filter_map(|section| (section.check)(&config).err());
                faults.extend(wrong.map(|error| (key.clone(), error.with("of", &key))));
            }
        }
        faults
    }
}

impl Section for AgentList {
    const PATH: &'static str = "agents.list";
    fn check(&self) -> Result<()> {
        let mut seen = std::collections::BTreeSet::new();
        for (at, agent) in self.0.iter().enumerate() {
            let wrong = |expected| {
                let (key, value) = (format!("[{at}].id"), format!("{:?}", agent.id));
                invalid_value::<Self>(&key, value, expected)
            };
            if agent.id.trim().is_empty() {
                return Err(wrong("the id of an agent"));
            }
            if !seen.insert(agent.id.as_str()) {
                return Err(wrong("an id that is unique in the list"));
            }
        }
        Ok(())
    }
}

inventory::submit! { ConfigSection::of::<AgentList>(env!("CARGO_PKG_NAME")) }

//! Which engine the configuration selects, and by which key.

use std::fmt;

use ctx_core::Result;
use serde::{Deserialize, Serialize};

use crate::{DEFAULT_ENGINE, Plugins};
use ctx_config::{AgentList, Config, Models};

/// The session for which an engine is selected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SelectFor<'a> {
    /// The engine that the user names for this run: `--engine`.
    pub engine: Option<&'a str>,
    /// The agent that owns the session.
    pub agent: Option<&'a str>,
    /// The provider of the model, if several list it.
    pub provider: Option<&'a str>,
    /// The model that receives the requests.
    pub model: Option<&'a str>,
}

/// The selected engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// Its id.
    pub id: String,
    /// What selected it.
    pub source: SelectedBy,
    /// The key of the configuration that names it, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// What selected an engine, in order of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SelectedBy {
    /// The user, for this run.
    Flag,
    /// `contextEngine` of the model's row in `models.providers`.
    Model,
    /// `contextEngine` of the agent in `agents.list`.
    Agent,
    /// `plugins.slots.contextEngine`.
    Global,
    /// None of these: the default engine.
    Default,
}

impl SelectedBy {
    /// Returns its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Flag => "flag",
            Self::Model => "model",
            Self::Agent => "agent",
            Self::Global => "global",
            Self::Default => "default",
        }
    }
}

impl fmt::Display for SelectedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Selects the engine for an agent and a model: the one named for this run, else by the model's
/// row, else the agent's, else `plugins.slots.contextEngine`.
///
/// # Errors
///
/// `Config`, if a section cannot be read.
///
/// # Example
///
/// ```
/// use ctx_config::Config;
/// use ctx_engine_registry::{SelectFor, SelectedBy, selected_engine};
///
/// let config = Config::parse(
///     "{ plugins: { slots: { contextEngine: 'lossless' } },
///        agents: { list: [{ id: 'ops', contextEngine: 'sliding-window' }] } }",
/// )?;
/// let ops = selected_engine(&config, SelectFor { agent: Some("ops"), ..SelectFor::default() })?;
/// assert_eq!((ops.id.as_str(), ops.source), ("sliding-window", SelectedBy::Agent));
/// let other = selected_engine(&config, SelectFor::default())?;
/// assert_eq!((other.id.as_str(), other.source), ("lossless", SelectedBy::Global));
/// # Ok::<(), ctx_core::Error>(())
/// ```
pub fn selected_engine(config: &Config, wanted: SelectFor<'_>) -> Result<Selection> {
    let selected = |id: &str, source, key| Ok(Selection { id: id.to_owned(), source, key });
    if let Some(id) = wanted.engine {
        return selected(id, SelectedBy::Flag, None);
    }
    let models: Models = config.section()?;
    let row = wanted.model.and_then(|model| models.find(wanted.provider, model));
    if let Some((provider, model)) = row
        && let Some(id) = model.context_engine.as_deref()
    {
        let rows = models.providers.get(provider).map_or(&[][..], |provider| &provider.models);
        let at = rows.iter().position(|other| other.id == model.id).unwrap_or_default();
        let key = format!("models.providers.{provider}.models[{at}].contextEngine");
        return selected(id, SelectedBy::Model, Some(key));
    }
    let agents: AgentList = config.section()?;
    let listed = agents.0.iter().position(|agent| Some(agent.id.as_str()) == wanted.agent);
    if let Some(at) = listed
        && let Some(id) = agents.0[at].context_engine.as_deref()
    {
        let key = format!("agents.list[{at}].contextEngine");
        return selected(id, SelectedBy::Agent, Some(key));
    }
    if config.is_explicit("plugins.slots.contextEngine") {
        let slots = config.section::<Plugins>()?.slots;
        let key = "plugins.slots.contextEngine".to_owned();
        return selected(&slots.context_engine, SelectedBy::Global, Some(key));
    }
    selected(DEFAULT_ENGINE, SelectedBy::Default, None)
}

/// Returns every engine that a key of the configuration selects, with that key.
///
/// # Errors
///
/// See [`selected_engine`].
pub fn named_engines(config: &Config) -> Result<Vec<(String, String)>> {
    let global = config.section::<Plugins>()?.slots.context_engine;
    let mut named = vec![("plugins.slots.contextEngine".to_owned(), global)];
    let agents: AgentList = config.section()?;
    for (at, agent) in agents.0.iter().enumerate() {
        let key = format!("agents.list[{at}].contextEngine");
        named.extend(agent.context_engine.clone().map(|id| (key, id)));
    }
    let models: Models = config.section()?;
    for (name, provider) in &models.providers {
        for (at, model) in provider.models.iter().enumerate() {
            let key = format!("models.providers.{name}.models[{at}].contextEngine");
            named.extend(model.context_engine.clone().map(|id| (key, id)));
        }
    }
    Ok(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &str = "{
        plugins: { slots: { contextEngine: 'g' } },
        agents: { list: [{ id: 'ops', contextEngine: 'a' }, { id: 'plain' }] },
        models: { providers: {
            p: { models: [{ id: 'm', contextEngine: 'mp' }, { id: 'n' }] },
            q: { models: [{ id: 'm', contextEngine: 'mq' }] },
        } },
    }";

    fn chosen(text: &str, wanted: SelectFor<'_>) -> (String, SelectedBy) {
        let selection = selected_engine(&Config::parse(text).unwrap(), wanted).unwrap();
        (selection.id, selection.source)
    }

    #[test]
    fn the_flag_precedes_the_model_the_agent_and_the_global_key() {
        use SelectedBy::*;
        let none = SelectFor::default();
        let all = SelectFor {
            engine: Some("f"),
            agent: Some("ops"),
            provider: Some("q"),
            model: Some("m"),
        };
        for (wanted, id, source) in [
            (all, "f", Flag),
            (SelectFor { engine: None, ..all }, "mq", Model),
            (SelectFor { engine: None, provider: None, ..all }, "mp", Model),
            (SelectFor { model: Some("p/m"), ..none }, "mp", Model),
            (SelectFor { model: Some("n"), agent: Some("ops"), ..none }, "a", Agent),
            (SelectFor { model: Some("unlisted"), agent: Some("ops"), ..none }, "a", Agent),
            (SelectFor { model: Some("n"), agent: Some("plain"), ..none }, "g", Global),
            (SelectFor { agent: Some("unlisted"), ..none }, "g", Global),
            (none, "g", Global),
        ] {
            assert_eq!(chosen(ALL, wanted), (id.to_owned(), source), "{wanted:?}");
        }
        assert_eq!(chosen("{}", none), ("legacy".to_owned(), Default));
    }

    #[test]
    fn every_configured_engine_is_listed_with_its_key() {
        let named = named_engines(&Config::parse(ALL).unwrap()).unwrap();
        let keys: Vec<_> = named.iter().map(|(key, id)| format!("{key}={id}")).collect();
        assert_eq!(
            keys,
            [
                "plugins.slots.contextEngine=g",
                "agents.list[0].contextEngine=a",
                "models.providers.p.models[0].contextEngine=mp",
                "models.providers.q.models[0].contextEngine=mq",
            ]
        );
    }
}

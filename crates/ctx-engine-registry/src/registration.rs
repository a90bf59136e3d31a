//! What a crate submits to be found.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use ctx_core::{
    ContextEngine, Counter, Embedder, Layer, MemoryStore, Result, Services, SummaryModels, Tokens,
};
use serde::{Deserialize, Serialize};

use crate::{Config, Registry};

/// A place that one plugin at a time can fill.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "camelCase")]
pub enum Slot {
    /// What the model sees: `plugins.slots.contextEngine`.
    #[default]
    ContextEngine,
    /// Long-term memory: `plugins.slots.memory`.
    Memory,
}

impl Slot {
    /// The key under `plugins.slots`.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::ContextEngine => "contextEngine",
            Self::Memory => "memory",
        }
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.key())
    }
}

/// The model's window, settled before anything is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelWindow {
    /// Its size.
    pub tokens: Tokens,
    /// The model's own window, where it is known and another is used.
    pub native: Option<Tokens>,
    /// Who stated it: `model`, `modelsConfig`, `agentContextTokens` or `default`.
    pub source: &'static str,
}

impl From<Tokens> for ModelWindow {
    /// A window that nobody stated.
    fn from(tokens: Tokens) -> Self {
        Self { tokens, native: None, source: "default" }
    }
}

/// What a layer or an engine is built from.
#[derive(Clone, Copy, Debug)]
pub struct BuildContext<'a> {
    /// The configuration, profile included.
    pub config: &'a Config,
    /// What the host offers.
    pub services: &'a Services,
    /// The model's window.
    pub window: ModelWindow,
    /// What is linked.
    pub registry: &'a Registry,
}

/// Builds a layer; gives `None` when the configuration switches it off.
pub type BuildLayer = fn(&BuildContext<'_>) -> Result<Option<Box<dyn Layer>>>;

/// A layer that is linked. `order` sorts the layers of the layered engine: 100 window guard,
/// 200 tool guard, 300 pruning, 400 memory, 500 compaction.
#[derive(Clone, Copy, Debug)]
pub struct LayerRegistration {
    /// The layer's name.
    pub id: &'static str,
    /// The crate that brings it: `env!("CARGO_PKG_NAME")`.
    pub source: &'static str,
    /// Its place among the layers.
    pub order: u32,
    /// One line for people.
    pub about: &'static str,
    /// Builds it.
    pub build: BuildLayer,
}

/// An engine that is linked.
#[derive(Clone, Copy, Debug)]
pub struct EngineRegistration {
    /// The slot it fills.
    pub slot: Slot,
    /// The id the config selects it by.
    pub id: &'static str,
    /// The crate that brings it.
    pub source: &'static str,
    /// One line for people.
    pub about: &'static str,
    /// Builds it.
    pub build: fn(&BuildContext<'_>) -> Result<Arc<dyn ContextEngine>>,
}

/// What the memory of a session is made from.
#[derive(Clone, Copy)]
pub struct MemoryContext<'a> {
    /// The configuration, profile included.
    pub config: &'a Config,
    /// The agent whose memory it is.
    pub agent: &'a str,
    /// The session that archives into it and recalls from it.
    pub session: &'a str,
    /// The folder of the agent's memory; `None` where nothing may stay, as in a replay.
    pub folder: Option<&'a Path>,
    /// How tokens are counted.
    pub counter: Counter,
    /// The models that look for facts, where there are any.
    pub models: Option<&'a SummaryModels>,
    /// The model that makes vectors, where the host brings one.
    pub embedder: Option<&'a Arc<dyn Embedder>>,
}

/// Makes the memory of a session.
pub type BuildMemory = fn(&MemoryContext<'_>) -> Result<Arc<dyn MemoryStore>>;

/// A memory that is linked, for the slot `memory`.
///
/// # Notes
///
/// With `legacy` the linked layers recall from it and archive into it. Beside an engine that is
/// installed, those in `layers` of all that are linked do: layers that build nothing without a memory.
#[derive(Clone, Copy, Debug)]
pub struct MemoryRegistration {
    /// The id the config selects it by.
    pub id: &'static str,
    /// The crate that brings it.
    pub source: &'static str,
    /// One line for people.
    pub about: &'static str,
    /// Makes the memory of a session; `None` where the host does.
    pub build: Option<BuildMemory>,
    /// What recalls and archives beside an engine that is installed.
    pub layers: &'static [BuildLayer],
}

inventory::collect!(LayerRegistration);
inventory::collect!(MemoryRegistration);
inventory::collect!(EngineRegistration);

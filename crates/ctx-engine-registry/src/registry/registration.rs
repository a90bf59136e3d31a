//! The registrations that crates submit.

use std::path::Path;
use std::sync::Arc;

use ctx_core::{
    ContextEngine, Counter, Embedder, Layer, MemoryStore, Result, Services, SummaryModels, Tokens,
};

use crate::Slot;
use ctx_config::Config;

use super::Registry;

/// The model's context window, determined before anything is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelWindow {
    /// Its size.
    pub tokens: Tokens,
    /// The model's own window, if it is known and differs from `tokens`.
    pub native: Option<Tokens>,
    /// Its source: `model`, `modelsConfig`, `agentContextTokens` or `default`.
    pub source: &'static str,
}

impl From<Tokens> for ModelWindow {
    /// A window without a stated source.
    fn from(tokens: Tokens) -> Self {
        Self { tokens, native: None, source: "default" }
    }
}

/// The inputs for building a layer or an engine.
#[derive(Clone, Copy, Debug)]
pub struct BuildContext<'a> {
    /// The configuration, profile included.
    pub config: &'a Config,
    /// The services of the host.
    pub services: &'a Services,
    /// The model's window.
    pub window: ModelWindow,
    /// The registry of linked parts.
    pub registry: &'a Registry,
}

/// Builds a layer; returns `None` if the configuration switches it off.
pub type BuildLayer = fn(&BuildContext<'_>) -> Result<Option<Box<dyn Layer>>>;

/// A linked layer. `order` sorts the layers of the layered engine: 100 window guard, 200 tool
/// guard, 300 pruning, 400 memory, 500 compaction, 600
/// deduplication.
#[derive(Clone, Copy, Debug)]
pub struct LayerRegistration {
    /// The layer's name.
    pub id: &'static str,
    /// The crate that registers it: `env!("CARGO_PKG_NAME")`.
    pub source: &'static str,
    /// Its place among the layers.
    pub order: u32,
    /// One line for people.
    pub about: &'static str,
    /// Builds it.
    pub build: BuildLayer,
}

/// A linked engine.
#[derive(Clone, Copy, Debug)]
pub struct EngineRegistration {
    /// The slot it fills.
    pub slot: Slot,
    /// The id used in the configuration.
    pub id: &'static str,
    /// The crate that registers it.
    pub source: &'static str,
    /// One line for people.
    pub about: &'static str,
    /// Builds it.
    pub build: fn(&BuildContext<'_>) -> Result<Arc<dyn ContextEngine>>,
}

/// The inputs for building the memory of a session.
#[derive(Clone, Copy)]
pub struct MemoryContext<'a> {
    /// The configuration, profile included.
    pub config: &'a Config,
    /// The agent that owns the memory.
    pub agent: &'a str,
    /// The session that archives into it and recalls from it.
    pub session: &'a str,
    /// The folder of the agent's memory; `None` if nothing may be stored, as in a replay.
    pub folder: Option<&'a Path>,
    /// The token counter.
    pub counter: Counter,
    /// The models that extract facts, if there are any.
    pub models: Option<&'a SummaryModels>,
    /// The embedding model, if the host provides one.
    pub embedder: Option<&'a Arc<dyn Embedder>>,
}

/// Builds the memory of a session.
pub type BuildMemory = fn(&MemoryContext<'_>) -> Result<Arc<dyn MemoryStore>>;

/// A linked memory, for the slot `memory`.
///
/// # Notes
///
/// With `legacy` the linked layers recall from it and archive into it. With an installed engine,
/// the `layers` of all linked memories do so; without a memory, they build to `None`.
#[derive(Clone, Copy, Debug)]
pub struct MemoryRegistration {
    /// The id used in the configuration.
    pub id: &'static str,
    /// The crate that registers it.
    pub source: &'static str,
    /// One line for people.
    pub about: &'static str,
    /// Builds the memory of a session; `None` if the host does.
    pub build: Option<BuildMemory>,
    /// The layers that recall and archive with an installed engine.
    pub layers: &'static [BuildLayer],
}

inventory::collect!(LayerRegistration);
inventory::collect!(MemoryRegistration);
inventory::collect!(EngineRegistration);

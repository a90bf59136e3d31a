//! What a crate submits to be found.

use std::fmt;
use std::sync::Arc;

use ctx_core::{ContextEngine, Layer, Result, Services, Tokens};
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
    /// The model that writes summaries: `plugins.slots.summarizer`.
    Summarizer,
    /// The model that makes vectors: `plugins.slots.embedder`.
    Embedder,
}

impl Slot {
    /// The key under `plugins.slots`.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::ContextEngine => "contextEngine",
            Self::Memory => "memory",
            Self::Summarizer => "summarizer",
            Self::Embedder => "embedder",
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

inventory::collect!(LayerRegistration);
inventory::collect!(EngineRegistration);

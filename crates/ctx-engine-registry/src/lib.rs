//! Slots, registration, configuration, and the engine that is made of layers.
//!
//! A crate that wants to be found submits a [`LayerRegistration`], an [`EngineRegistration`], a
//! [`MemoryRegistration`] or a [`ConfigSection`] with `inventory`. [`Registry::collect`] gathers what is linked, refuses
//! duplicates, and builds the engine that the config key `plugins.slots.contextEngine` names. The
//! default, `legacy`, is nothing but the linked layers in their order: a [`LayeredEngine`].

#[cfg(feature = "plugins")]
pub mod carrier;
mod config;
#[cfg(feature = "plugins")]
pub mod find;
#[cfg(feature = "plugins")]
pub mod foreign;
#[cfg(feature = "plugins")]
mod installed;
mod layered;
#[cfg(feature = "plugins")]
pub mod manifest;
mod name;
mod registration;
mod registry;
mod selection;

pub use config::{
    AgentConfig, AgentList, CompactionBy, Config, ConfigSection, ContextTokens, ConversationModels,
    Deadlines, EngineConfig, EngineSettings, ModelConfig, ModelCost, Models, OnFailure, Plugins,
    PriceList, ProfileKey, ProviderConfig, Running, SecretText, Section, Slots, Trust, wrong_value,
};
pub use layered::LayeredEngine;
pub use name::EngineName;
pub use registration::{
    BuildContext, BuildLayer, BuildMemory, EngineRegistration, LayerRegistration, MemoryContext,
    MemoryRegistration, ModelWindow, Slot,
};
pub use registry::{DEFAULT_ENGINE, EngineEntry, EngineState, NO_MEMORY, Registry};

pub use selection::{SelectFor, SelectedBy, Selection, engines_named, selected_engine};

/// For the registration macros of dependents.
pub use inventory;

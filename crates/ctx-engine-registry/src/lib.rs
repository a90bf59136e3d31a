//! Slots, registration, configuration, and the engine that is made of layers.
//!
//! A crate that wants to be found submits a [`LayerRegistration`], an [`EngineRegistration`] or a
//! [`ConfigSection`] with `inventory`. [`Registry::collect`] gathers what is linked, refuses
//! duplicates, and builds the engine that the config key `plugins.slots.contextEngine` names. The
//! default, `legacy`, is nothing but the linked layers in their order: a [`LayeredEngine`].

mod config;
mod layered;
mod registration;
mod registry;

pub use config::{
    Config, ConfigSection, ContextTokens, ModelConfig, ModelCost, Models, Plugins, ProfileKey,
    ProviderConfig, Running, SecretText, Section, Slots, wrong_value,
};
pub use layered::LayeredEngine;
pub use registration::{
    BuildContext, BuildLayer, EngineRegistration, LayerRegistration, ModelWindow, Slot,
};
pub use registry::{DEFAULT_ENGINE, EngineEntry, Registry};

/// For the registration macros of dependents.
pub use inventory;

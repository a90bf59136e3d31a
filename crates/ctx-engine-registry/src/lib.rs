//! Slots, registration, and the engine that consists of layers.
//!
//! A crate registers itself by submitting a [`LayerRegistration`], an [`EngineRegistration`] or a
//! [`MemoryRegistration`] with `inventory`. [`Registry::collect`] gathers what is linked, rejects
//! duplicates, and builds the engine named by the config key `plugins.slots.contextEngine`. The
//! default, `legacy`, consists of the linked layers in their order: a [`LayeredEngine`].

#[cfg(feature = "plugins")]
pub mod find;
#[cfg(feature = "plugins")]
pub mod foreign;
mod layered;
#[cfg(feature = "plugins")]
pub mod manifest;
mod name;
mod plugins;
mod registry;
mod selection;
mod settings;

pub use layered::LayeredEngine;
pub use name::{DEFAULT_ENGINE, EngineName, Slot};
pub use plugins::{
    CompactionBy, Deadlines, EngineConfig, EngineEncoding, OnFailure, Plugins, Slots, Trust,
};
pub use registry::{
    BuildContext, BuildLayer, BuildMemory, EngineEntry, EngineRegistration, EngineState,
    LayerRegistration, MemoryContext, MemoryRegistration, ModelWindow, NO_MEMORY, Registry,
};
pub use selection::{SelectFor, SelectedBy, Selection, named_engines, selected_engine};
pub use settings::EngineSettings;

/// For the registration macros of dependent crates.
pub use inventory;

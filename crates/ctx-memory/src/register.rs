//! Makes the layers and the engine known to the registry.

use std::sync::Arc;

use ctx_core::{ContextEngine, Layer, MemoryStore, Profile, Result};
use ctx_engine_registry::{
    BuildContext, ConfigSection, EngineRegistration, LayerRegistration, LayeredEngine,
    MemoryRegistration, NO_MEMORY, Plugins, Section, Slot,
};
use serde_json::json;

use crate::workspace::{self, WorkspaceLayer};
use crate::{Archive, Config, Recall};

/// What switches it on.
const ENABLED: &str = "agents.defaults.memoryContext.enabled";

/// The engine whose layers trim, archive and recall, whatever the profile.
pub const ENGINE: &str = "memory-context";

impl Section for Config {
    const PATH: &'static str = "agents.defaults.memoryContext";
    fn for_profile(profile: Profile) -> Self {
        Config::for_profile(profile)
    }
    fn check(&self) -> Result<()> {
        Config::check(self)
    }
}

impl Section for workspace::Folder {
    const PATH: &'static str = "agents.defaults.workspace";
    fn for_profile(_: Profile) -> Self {
        Self(None)
    }
    fn check(&self) -> Result<()> {
        workspace::Folder::check(self)
    }
}

impl Section for workspace::Access {
    const PATH: &'static str = "agents.defaults.workspaceAccess";
    fn for_profile(_: Profile) -> Self {
        Self::default()
    }
}

impl Section for workspace::Config {
    const PATH: &'static str = "agents.defaults.workspaceContext";
    fn for_profile(profile: Profile) -> Self {
        workspace::Config::for_profile(profile)
    }
    fn check(&self) -> Result<()> {
        workspace::Config::check(self)
    }
}

/// The section and the memory, where both are there.
fn enabled(context: &BuildContext<'_>) -> Result<Option<(Config, Arc<dyn MemoryStore>)>> {
    let config = Config::in_force(context.config)?;
    let memory = context.services.memory.clone().filter(|_| config.enabled);
    Ok(memory.map(|memory| (config, memory)))
}

fn build_recall(context: &BuildContext<'_>) -> Result<Option<Box<dyn Layer>>> {
    let parts = enabled(context)?;
    Ok(parts.map(|(config, memory)| Box::new(Recall::new(config, memory)) as Box<dyn Layer>))
}

fn build_archive(context: &BuildContext<'_>) -> Result<Option<Box<dyn Layer>>> {
    let parts = enabled(context)?;
    Ok(parts.map(|(_, memory)| Box::new(Archive::new(memory)) as Box<dyn Layer>))
}

fn build_workspace(context: &BuildContext<'_>) -> Result<Option<Box<dyn Layer>>> {
    let folder: workspace::Folder = context.config.section()?;
    let config: workspace::Config = context.config.section()?;
    let services = context.services;
    let search = services.workspace.clone().filter(|_| folder.0.is_some());
    let layer = |search| WorkspaceLayer::new(config, search, services.memory.clone());
    Ok(search.map(|search| Box::new(layer(search)) as Box<dyn Layer>))
}

impl Config {
    /// The section in force: `plugins.slots.memory` switches memory on, unless the section says
    /// otherwise, or off.
    ///
    /// # Errors
    ///
    /// As [`ctx_engine_registry::Config::section`].
    pub fn in_force(config: &ctx_engine_registry::Config) -> Result<Self> {
        let mut section: Self = config.section()?;
        match config.section::<Plugins>()?.slots.memory.as_deref() {
            Some(NO_MEMORY) => section.enabled = false,
            Some(_) => section.enabled |= !config.is_explicit(ENABLED),
            None => {}
        }
        Ok(section)
    }

    /// The section in force for an engine: for [`ENGINE`] that of the profile `memory-context`,
    /// switched on.
    ///
    /// # Errors
    ///
    /// As [`ctx_engine_registry::Config::section`].
    pub fn for_engine(config: &ctx_engine_registry::Config, engine: &str) -> Result<Self> {
        match engine {
            ENGINE => Self::in_force(&switched_on(config)?),
            _ => Self::in_force(config),
        }
    }
}

fn switched_on(config: &ctx_engine_registry::Config) -> Result<ctx_engine_registry::Config> {
    let on = json!({ "agents": { "defaults": { "memoryContext": { "enabled": true } } } });
    config.clone().with_profile(Profile::MemoryContext).overlaid(on)
}

fn build_engine(context: &BuildContext<'_>) -> Result<Arc<dyn ContextEngine>> {
    let config = switched_on(context.config)?;
    let layers = context.registry.build_layers(&BuildContext { config: &config, ..*context })?;
    Ok(Arc::new(LayeredEngine::new(ENGINE, "Memory engine", layers)))
}

ctx_engine_registry::inventory::submit! { ConfigSection::of::<Config>(env!("CARGO_PKG_NAME")) }
ctx_engine_registry::inventory::submit! {
    LayerRegistration {
        id: Recall::ID,
        source: env!("CARGO_PKG_NAME"),
        order: 400,
        about: "trims what matters least to what is asked, and recalls what matters; off by default",
        build: build_recall,
    }
}
ctx_engine_registry::inventory::submit! { ConfigSection::of::<workspace::Folder>(env!("CARGO_PKG_NAME")) }
ctx_engine_registry::inventory::submit! { ConfigSection::of::<workspace::Access>(env!("CARGO_PKG_NAME")) }
ctx_engine_registry::inventory::submit! { ConfigSection::of::<workspace::Config>(env!("CARGO_PKG_NAME")) }
ctx_engine_registry::inventory::submit! {
    LayerRegistration {
        id: WorkspaceLayer::ID,
        source: env!("CARGO_PKG_NAME"),
        order: 410,
        about: "brings in files of the workspace that a message asks for; off by default",
        build: build_workspace,
    }
}
ctx_engine_registry::inventory::submit! {
    LayerRegistration {
        id: Archive::ID,
        source: env!("CARGO_PKG_NAME"),
        order: 600,
        about: "archives what leaves the window; off by default",
        build: build_archive,
    }
}
ctx_engine_registry::inventory::submit! {
    EngineRegistration {
        slot: Slot::ContextEngine,
        id: ENGINE,
        source: env!("CARGO_PKG_NAME"),
        about: "the layers with long-term memory: trims, archives and recalls",
        build: build_engine,
    }
}
ctx_engine_registry::inventory::submit! {
    MemoryRegistration {
        id: ENGINE,
        source: env!("CARGO_PKG_NAME"),
        about: "long-term memory for whatever engine is selected",
        build: None,
        layers: &[build_recall, build_archive],
    }
}

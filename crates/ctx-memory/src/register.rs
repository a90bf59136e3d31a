//! Registers the layers and the engine.

use std::sync::Arc;

use ctx_config::{ConfigSection, Profile, Section};
use ctx_core::{ContextEngine, Error, ErrorKind, Layer, MemoryStore, Result};
use ctx_engine_registry::{
    BuildContext, EngineRegistration, LayerRegistration, LayeredEngine, MemoryRegistration,
    NO_MEMORY, Plugins, Slot,
};
use serde_json::json;

use crate::{Archive, Config, Recall, Trim};

/// The key that enables memory.
const ENABLED: &str = "agents.defaults.memoryContext.enabled";

/// The engine whose layers trim, archive and recall under any profile.
const ENGINE: &str = "memory-context";

impl Section for Config {
    const PATH: &'static str = "agents.defaults.memoryContext";
    fn check(&self) -> Result<()> {
        self.excluded().map(drop)
    }
}

/// Returns the configuration and the memory, if both are present and enabled.
fn enabled(context: &BuildContext<'_>) -> Result<Option<(Config, Arc<dyn MemoryStore>)>> {
    let config = Config::in_force(context.config)?;
    let memory = context.services.memory.clone().filter(|_| config.enabled);
    Ok(memory.map(|memory| (config, memory)))
}

fn build_recall(context: &BuildContext<'_>) -> Result<Option<Box<dyn Layer>>> {
    let parts = enabled(context)?;
    Ok(parts.map(|(config, memory)| Box::new(Recall::new(config, memory)) as Box<dyn Layer>))
}

fn build_trim(context: &BuildContext<'_>) -> Result<Option<Box<dyn Layer>>> {
    let parts = enabled(context)?;
    Ok(parts.map(|(config, _)| Box::new(Trim::new(config)) as Box<dyn Layer>))
}

fn build_archive(context: &BuildContext<'_>) -> Result<Option<Box<dyn Layer>>> {
    let parts = enabled(context)?;
    Ok(parts.map(|(_, memory)| Box::new(Archive::new(memory)) as Box<dyn Layer>))
}

impl Config {
    /// Returns the effective section: `plugins.slots.memory` switches memory on or off, unless the
    /// section says otherwise.
    ///
    /// # Errors
    ///
    /// As [`ctx_config::Config::section`].
    pub(crate) fn in_force(config: &ctx_config::Config) -> Result<Self> {
        let mut section: Self = config.section()?;
        match config.section::<Plugins>()?.slots.memory.as_deref() {
            Some(NO_MEMORY) => section.enabled = false,
            Some(_) => section.enabled |= !config.is_explicit(ENABLED),
            None => {}
        }
        Ok(section)
    }

    /// Returns the effective section for an engine: for `memory-context`, the section of the
    /// profile with this name, switched on.
    ///
    /// # Errors
    ///
    /// As [`ctx_config::Config::section`].
    pub fn for_engine(config: &ctx_config::Config, engine: &str) -> Result<Self> {
        match engine {
            ENGINE => Self::in_force(&switched_on(config)?),
            _ => Self::in_force(config),
        }
    }
}

fn switched_on(config: &ctx_config::Config) -> Result<ctx_config::Config> {
    let on = json!({ "agents": { "defaults": { "memoryContext": { "enabled": true } } } });
    let profile = Profile::find(ENGINE).ok_or_else(|| {
        Error::new(ErrorKind::Config, "the engine has no profile of its name")
            .with("engine", ENGINE)
            .hint("restore the file of that profile in ctx-config")
    })?;
    config.clone().with_profile(profile).overlaid(on)
}

fn build_engine(context: &BuildContext<'_>) -> Result<Arc<dyn ContextEngine>> {
    let config = switched_on(context.config)?;
    let layers = context.registry.build_layers(&BuildContext { config: &config, ..*context })?;
    Ok(Arc::new(LayeredEngine::new(ENGINE, "Memory engine", layers)))
}

ctx_config::inventory::submit! { ConfigSection::of::<Config>(env!("CARGO_PKG_NAME")) }
ctx_engine_registry::inventory::submit! {
    LayerRegistration {
        id: Recall::ID,
        source: env!("CARGO_PKG_NAME"),
        order: 495,
        about: "recalls messages relevant to the question; off by default",
        build: build_recall,
    }
}
ctx_engine_registry::inventory::submit! {
    LayerRegistration {
        id: Trim::ID,
        source: env!("CARGO_PKG_NAME"),
        order: 491,
        about: "trims messages least relevant to the question; off by default",
        build: build_trim,
    }
}
ctx_engine_registry::inventory::submit! {
    LayerRegistration {
        id: Archive::ID,
        source: env!("CARGO_PKG_NAME"),
        order: 492,
        about: "archives messages that leave the window; off by default",
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
        layers: &[build_trim, build_archive, build_recall],
    }
}

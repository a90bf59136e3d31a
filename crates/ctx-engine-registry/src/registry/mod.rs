//! The linked parts, and selecting an engine from them.

#[cfg(feature = "plugins")]
mod installed;
mod registration;

use std::collections::BTreeMap;
use std::sync::Arc;

use ctx_core::text::head_chars;
use ctx_core::{ContextEngine, Error, ErrorKind, Layer, MemoryStore, Result};

use crate::layered::LayeredEngine;
use crate::{DEFAULT_ENGINE, Plugins, SelectFor, Slot};
use ctx_config::Config;

pub use registration::{
    BuildContext, BuildLayer, BuildMemory, EngineRegistration, LayerRegistration, MemoryContext,
    MemoryRegistration, ModelWindow,
};

/// The value of `plugins.slots.memory` for no long-term memory.
pub const NO_MEMORY: &str = "none";

inventory::submit! {
    EngineRegistration {
        slot: Slot::ContextEngine,
        id: DEFAULT_ENGINE,
        source: env!("CARGO_PKG_NAME"),
        about: "the profile's layers, in order",
        build: build_legacy,
    }
}

fn build_legacy(context: &BuildContext<'_>) -> Result<Arc<dyn ContextEngine>> {
    let layers = context.registry.build_layers(context)?;
    Ok(Arc::new(LayeredEngine::new(DEFAULT_ENGINE, "Layered engine", layers)))
}

/// A row of the engine list.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct EngineEntry {
    /// The id used in the configuration.
    pub id: String,
    /// The slot it fills.
    pub slot: Slot,
    /// The crate that registers it, or the manifest.
    pub source: String,
    /// Its transport: `builtin`, `dylib` or `process`.
    pub carrier: String,
    /// Its version, if known.
    pub version: Option<String>,
    /// The hash of its file, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Whether it can be used: `ok`, or `refused`. A host that keeps engine health may set
    /// `degraded`.
    pub state: EngineState,
    /// Why it is refused or degraded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A hint for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// One line for people.
    pub about: String,
    /// Whether the config selects it for agents and models without an engine of their own.
    pub selected: bool,
}

/// Whether an engine can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub enum EngineState {
    /// It is built in, or passed all checks.
    Ok,
    /// It passed all checks, but its last call failed. It is called again.
    Degraded,
    /// It is installed, but failed a check.
    Refused,
}

/// Layers and engines by id.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Registry {
    layers: Vec<LayerRegistration>,
    engines: BTreeMap<(Slot, &'static str), EngineRegistration>,
    memories: BTreeMap<&'static str, MemoryRegistration>,
    #[cfg(feature = "plugins")]
    search: crate::find::Search,
    #[cfg(feature = "plugins")]
    engine_host: Option<std::path::PathBuf>,
}

impl Registry {
    /// Gathers everything that is linked into this program. With the feature `plugins`, engines
    /// that are not linked are searched for in the places of the environment, on first use.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Conflict`] if two crates register one id; it names both.
    pub fn collect() -> Result<Self> {
        let mut registry = Self::from_parts(
            inventory::iter::<LayerRegistration>.into_iter().copied(),
            inventory::iter::<EngineRegistration>.into_iter().copied(),
        )?;
        for memory in inventory::iter::<MemoryRegistration> {
            registry = registry.with_memory(*memory)?;
        }
        #[cfg(feature = "plugins")]
        let registry = registry.with_search(crate::find::Search::from_env());
        Ok(registry)
    }

    /// Creates a registry of the given parts. Nothing else is searched for.
    ///
    /// # Errors
    ///
    /// See [`Registry::collect`].
    pub fn from_parts(
        layers: impl IntoIterator<Item = LayerRegistration>,
        engines: impl IntoIterator<Item = EngineRegistration>,
    ) -> Result<Self> {
        let mut registry = Self::default();
        for layer in layers {
            if let Some(other) = registry.layers.iter().find(|l| l.id == layer.id) {
                return Err(conflict("layer", layer.id, other.source, layer.source));
            }
            registry.layers.push(layer);
        }
        registry.layers.sort_by_key(|l| (l.order, l.id));
        for engine in engines {
            if let Some(other) = registry.engines.insert((engine.slot, engine.id), engine) {
                return Err(conflict("engine", engine.id, other.source, engine.source));
            }
        }
        Ok(registry)
    }

    /// Adds another memory for the slot.
    ///
    /// # Errors
    ///
    /// See [`Registry::collect`].
    pub fn with_memory(mut self, memory: MemoryRegistration) -> Result<Self> {
        match self.memories.insert(memory.id, memory) {
            Some(other) => Err(conflict("memory", memory.id, other.source, memory.source)),
            None => Ok(self),
        }
    }

    /// Returns the linked layers, in their order.
    pub fn layers(&self) -> &[LayerRegistration] {
        &self.layers
    }

    /// Returns the linked engines.
    pub fn engines(&self) -> impl Iterator<Item = &EngineRegistration> {
        self.engines.values()
    }

    /// Lists the engines, for people: linked ones, then installed ones.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`].
    pub fn engine_list(&self, config: &Config) -> Result<Vec<EngineEntry>> {
        let selected = selected_engine(config)?;
        let engines = self.engines().map(|e| (e.slot, e.id, e.source, e.about));
        let memories = self.memories.values().map(|m| (Slot::Memory, m.id, m.source, m.about));
        let list = engines.chain(memories).map(|(slot, id, source, about)| EngineEntry {
            id: id.to_owned(),
            slot,
            source: source.to_owned(),
            carrier: "builtin".to_owned(),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            sha256: None,
            state: EngineState::Ok,
            reason: None,
            hint: None,
            about: about.to_owned(),
            selected: slot == Slot::ContextEngine && id == selected,
        });
        #[cfg(feature = "plugins")]
        let list = list.chain(self.installed(config, &selected)?);
        Ok(list.collect())
    }

    /// Checks the engines selected by a configuration: that each of them, for everything or for an
    /// agent or a model, exists and can be used.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] for an unknown engine; it lists the known ones. For one that is
    /// installed and refused, the reason.
    pub fn check(&self, config: &Config) -> Result<()> {
        self.memory_named(config)?;
        let named = crate::named_engines(config)?;
        named.iter().try_for_each(|(key, id)| self.check_engine(id).map_err(|e| e.with("key", key)))
    }

    /// Returns the memory named by `plugins.slots.memory`, if it names one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] for an unknown name.
    pub fn memory_named(&self, config: &Config) -> Result<Option<&MemoryRegistration>> {
        let slot = config.section::<Plugins>()?.slots.memory;
        let Some(id) = slot.filter(|id| id != NO_MEMORY) else { return Ok(None) };
        self.memories.get(&*id).map(Some).ok_or_else(|| {
            let known = self.memories.keys().copied().chain([NO_MEMORY]);
            let known: Vec<_> = known.map(|id| format!("'{id}'")).collect();
            let shown = head_chars(&id, 80);
            Error::new(ErrorKind::Config, format!("unknown memory '{shown}'"))
                .with("key", "plugins.slots.memory")
                .hint(format!("set it to {}, or remove it", known.join(" or ")))
        })
    }

    /// Builds the memory of a session with the crate named by `plugins.slots.memory`; `None` if the
    /// host builds it, or without a memory.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] for an unknown name; errors of building it.
    pub fn memory(&self, context: &MemoryContext<'_>) -> Result<Option<Arc<dyn MemoryStore>>> {
        let build = self.memory_named(context.config)?.and_then(|memory| memory.build);
        build.map(|build| build(context)).transpose()
    }

    /// Returns the layers that recall and archive with an installed engine.
    #[cfg(feature = "plugins")]
    fn memory_layers(&self, context: &BuildContext<'_>) -> Result<Vec<Box<dyn Layer>>> {
        let builders = self.memories.values().flat_map(|memory| memory.layers);
        builders.filter_map(|build| build(context).transpose()).collect()
    }

    /// Rejects an engine id that is neither linked nor installed, or that cannot be used.
    ///
    /// # Errors
    ///
    /// See [`Registry::check`].
    pub fn check_engine(&self, id: &str) -> Result<()> {
        match self.linked(id) {
            Some(_) => Ok(()),
            None => self.check_installed(id),
        }
    }

    #[cfg(not(feature = "plugins"))]
    fn check_installed(&self, id: &str) -> Result<()> {
        Err(self.unknown_engine(id))
    }

    /// Builds the layers that the configuration enables, in their order.
    pub fn build_layers(&self, context: &BuildContext<'_>) -> Result<Vec<Box<dyn Layer>>> {
        let mut layers = Vec::new();
        for registration in &self.layers {
            layers.extend((registration.build)(context)?);
        }
        Ok(layers)
    }

    /// Builds the engine `id`, or the one named by the config: a linked one, else, with the feature
    /// `plugins`, an installed one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] for an unknown id; it lists the known ones. For one that is
    /// installed and refused, the reason.
    pub fn build_engine(
        &self,
        id: Option<&str>,
        context: &BuildContext<'_>,
    ) -> Result<Arc<dyn ContextEngine>> {
        let id = match id {
            Some(id) => id.to_owned(),
            None => selected_engine(context.config)?,
        };
        match self.linked(&id) {
            Some(linked) => (linked.build)(context),
            None => self.build_unlinked(&id, context),
        }
    }

    #[cfg(feature = "plugins")]
    fn build_unlinked(
        &self,
        id: &str,
        context: &BuildContext<'_>,
    ) -> Result<Arc<dyn ContextEngine>> {
        Ok(Arc::new(self.build_installed(id, context)?))
    }

    #[cfg(not(feature = "plugins"))]
    fn build_unlinked(&self, id: &str, _: &BuildContext<'_>) -> Result<Arc<dyn ContextEngine>> {
        Err(self.unknown_engine(id))
    }

    /// Returns the linked engine of that id. An installed engine cannot replace it.
    fn linked(&self, id: &str) -> Option<&EngineRegistration> {
        self.engines.values().find(|e| e.slot == Slot::ContextEngine && e.id == id)
    }

    fn unknown_engine(&self, id: &str) -> Error {
        let linked = self.engines().filter(|engine| engine.slot == Slot::ContextEngine);
        let known = linked.map(|engine| engine.id.to_owned());
        #[cfg(feature = "plugins")]
        let known = known.chain(self.search.list().engines.into_iter().map(|e| e.name.to_string()));
        let known: Vec<String> = known.collect();
        let more = match cfg!(feature = "plugins") {
            true => "`ctx engines` lists the available engines",
            false => {
                "this program is built without the feature `plugins` of ctx-runtime: it cannot use \
                 installed engines"
            }
        };
        let hint = match ctx_config::nearest(id, known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean '{near}'? {more}"),
            None => format!("use one of the known ids; {more}"),
        };
        Error::new(ErrorKind::NotFound, format!("unknown context engine '{id}'"))
            .with("known", known.join(", "))
            .hint(hint)
    }
}

fn selected_engine(config: &Config) -> Result<String> {
    Ok(crate::selected_engine(config, SelectFor::default())?.id)
}

fn conflict(what: &str, id: &str, first: &str, second: &str) -> Error {
    Error::new(ErrorKind::Conflict, format!("two crates register the {what} '{id}'"))
        .with("first", first)
        .with("second", second)
        .hint("link only one of them, or rename one")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(not(feature = "plugins"))]
    #[test]
    fn a_build_without_plugins_says_that_it_is_one() {
        let error = Registry::collect().unwrap().check_engine("keeper").unwrap_err();
        let hint = error.hint_text().unwrap();
        assert!(hint.contains("without the feature `plugins` of ctx-runtime"), "{hint}");
    }

    #[test]
    fn an_unknown_engine_is_refused_with_the_known_ids() {
        let registry = Registry::collect().unwrap();
        let check = |text: &str| registry.check(&Config::parse(text).unwrap());
        assert!(check("{}").is_ok());
        let error = check("{ plugins: { slots: { memory: 'x' } } }").unwrap_err();
        assert!(error.to_string().contains("plugins.slots.memory") && error.hint_text().is_some());
        let error = check("{ plugins: { slots: { contextEngine: 'legcy' } } }").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().contains("legcy") && error.to_string().contains("legacy"));
        assert!(error.hint_text().is_some_and(|hint| hint.contains("did you mean 'legacy'?")));
    }
}

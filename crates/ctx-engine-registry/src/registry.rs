//! What is linked, and how an engine is chosen from it.

use std::collections::BTreeMap;
use std::sync::Arc;

use ctx_core::{ContextEngine, Error, ErrorKind, Layer, Result};

use crate::layered::LayeredEngine;
use crate::{BuildContext, EngineRegistration, LayerRegistration, SelectFor, Slot};

/// The engine that runs when the config names none.
pub const DEFAULT_ENGINE: &str = "legacy";

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
    /// The id the config selects it by.
    pub id: String,
    /// The slot it fills.
    pub slot: String,
    /// The crate that brings it.
    pub source: String,
    /// How it is carried: `builtin`.
    pub carrier: String,
    /// One line for people.
    pub about: String,
    /// Whether the config selects it.
    pub selected: bool,
}

/// Layers and engines by id.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    layers: Vec<LayerRegistration>,
    engines: BTreeMap<(Slot, &'static str), EngineRegistration>,
}

impl Registry {
    /// Gathers everything that is linked into this program.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Conflict`] when two crates claim one id; it names both.
    pub fn collect() -> Result<Self> {
        Self::from_parts(
            inventory::iter::<LayerRegistration>.into_iter().copied(),
            inventory::iter::<EngineRegistration>.into_iter().copied(),
        )
    }

    /// A registry of the given parts, for hosts that choose by hand.
    ///
    /// # Errors
    ///
    /// As [`Registry::collect`].
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

    /// The linked layers, in their order.
    #[must_use]
    pub fn layers(&self) -> &[LayerRegistration] {
        &self.layers
    }

    /// The linked engines.
    pub fn engines(&self) -> impl Iterator<Item = &EngineRegistration> {
        self.engines.values()
    }

    /// The engines, as a list for people; `selected` is what the config names.
    pub fn engine_list(&self, config: &crate::Config) -> Result<Vec<EngineEntry>> {
        let selected = selected_engine(config)?;
        Ok(self
            .engines()
            .map(|engine| EngineEntry {
                id: engine.id.to_owned(),
                slot: engine.slot.key().to_owned(),
                source: engine.source.to_owned(),
                carrier: "builtin".to_owned(),
                about: engine.about.to_owned(),
                selected: engine.slot == Slot::ContextEngine && engine.id == selected,
            })
            .collect())
    }

    /// Checks what only a list of what is linked can tell of a configuration: that the engine it
    /// selects is there.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] for an engine nobody registered; it lists the known ones.
    pub fn check(&self, config: &crate::Config) -> Result<()> {
        self.check_engine(&selected_engine(config)?)
    }

    /// Refuses an engine id nobody registered.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`]; it lists the known ones.
    pub fn check_engine(&self, id: &str) -> Result<()> {
        self.engine(id).map(drop)
    }

    /// Builds the layers that the configuration leaves on, in their order.
    pub fn build_layers(&self, context: &BuildContext<'_>) -> Result<Vec<Box<dyn Layer>>> {
        let mut layers = Vec::new();
        for registration in &self.layers {
            layers.extend((registration.build)(context)?);
        }
        Ok(layers)
    }

    /// Builds the engine named `id`, or the one the config names.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] for an id nobody registered; it lists the known ones.
    pub fn build_engine(
        &self,
        id: Option<&str>,
        context: &BuildContext<'_>,
    ) -> Result<Arc<dyn ContextEngine>> {
        let id = match id {
            Some(id) => id.to_owned(),
            None => selected_engine(context.config)?,
        };
        (self.engine(&id)?.build)(context)
    }

    fn engine(&self, id: &str) -> Result<&EngineRegistration> {
        self.engines
            .values()
            .find(|engine| engine.slot == Slot::ContextEngine && engine.id == id)
            .ok_or_else(|| self.unknown_engine(id))
    }

    fn unknown_engine(&self, id: &str) -> Error {
        let known: Vec<_> = self
            .engines()
            .filter(|engine| engine.slot == Slot::ContextEngine)
            .map(|engine| engine.id)
            .collect();
        Error::new(ErrorKind::NotFound, format!("no context engine '{id}'"))
            .with("known", known.join(", "))
            .hint("set plugins.slots.contextEngine, or --engine, to one of the known ids")
    }
}

fn selected_engine(config: &crate::Config) -> Result<String> {
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
    use crate::Config;

    #[test]
    fn an_engine_that_is_not_linked_is_refused_with_the_known_ones() {
        let registry = Registry::collect().unwrap();
        let check = |text: &str| registry.check(&Config::parse(text).unwrap());
        assert!(check("{}").is_ok());
        let error = check("{ plugins: { slots: { contextEngine: 'legcy' } } }").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().contains("legcy") && error.to_string().contains("legacy"));
        assert!(error.hint_text().is_some());
    }
}

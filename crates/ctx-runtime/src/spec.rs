//! Resolves the model, window, reserve and engine of a session from names and configuration.

use std::path::Path;
use std::sync::Arc;

use ctx_config::{Config, ModelConfig, Models, PriceList, Profile, SystemRules};
use ctx_core::{
    ContextEngine, Counter, CounterKind, Error, ErrorKind, Result, Services, TokenLedger, Tokens,
};
use ctx_engine_registry::{
    BuildContext, ModelWindow, Registry, SelectFor, Selection, selected_engine,
};
use ctx_layers::compaction;
use ctx_layers::window_guard::{self, ContextWindowSource, Window, WindowSizes};
use ctx_model::{Catalogue, Model, Prices, Vintage};
use ctx_session::{Home, Transcript};

use crate::models::configured_prices;

/// Links the layers, which register themselves only if linked.
const _: &[&str] = ctx_layers::LINKED;

/// Where the name of a model comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ModelSource {
    /// The caller: an unknown model is an error.
    Requested,
    /// A record, or a caller that also gives the window: the model may be unknown.
    #[default]
    Recorded,
}

/// How a session is run: engine, model and agent. Absent values come from the configuration, the
/// catalogue and the profile.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct SessionSpec {
    /// The profile that sets the defaults.
    pub profile: Option<Profile>,
    /// How tokens are counted.
    pub counter: Option<CounterKind>,
    /// The engine.
    pub engine: Option<String>,
    /// The agent of the session.
    pub agent: Option<String>,
    /// The provider of the model.
    pub provider: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// Where the name of the model comes from.
    pub model_source: ModelSource,
    /// The window, overriding the model's.
    pub window: Option<Tokens>,
    /// The model's native window, if a record has it.
    pub native: Option<Tokens>,
    /// The size at which the recorded agent compacted because the window was nearly full.
    pub auto_compacted_at: Option<Tokens>,
    /// The largest recorded prompt that the model answered.
    pub answered: Option<Tokens>,
    /// The reserve for the answer.
    pub reserve: Option<Tokens>,
    /// The system prompt's text.
    pub system: Option<String>,
    /// The tool schemas, as JSON text.
    pub tools: Option<String>,
}

/// The resolved settings of a session, before any engine is built.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The configuration, with the requested profile.
    pub config: Config,
    /// Its section for the window guard.
    pub guard: window_guard::Config,
    /// Its section for compaction.
    pub compaction: compaction::Config,
    /// The profile that sets the defaults.
    pub profile: Profile,
    /// How tokens are counted.
    pub counter: Counter,
    /// The window, and its source.
    pub window: Window,
    /// The model's native window.
    pub native: Option<Tokens>,
    /// The recorded proof of the window, if that takes precedence.
    pub proof: Option<WindowProof>,
    /// The reserve for the answer.
    pub reserve: Tokens,
    /// The selected engine, and what selected it.
    pub engine: Selection,
    /// The provider of the model.
    pub provider: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// Its prices.
    pub prices: Option<Prices>,
    /// The size of the system prompt.
    pub system: Tokens,
    /// The size of the tool schemas.
    pub tools: Tokens,
}

/// A recorded size that proves another window than the catalogue's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowProof {
    /// The size of the context when the agent compacted it because the window was nearly full; or
    /// the size of an answered prompt, if that exceeds the catalogue's window.
    pub recorded: Tokens,
    /// The catalogue's window.
    pub catalogued: Tokens,
}

impl WindowProof {
    /// Whether the window is smaller than the catalogue says.
    pub fn is_smaller(&self) -> bool {
        self.recorded <= self.catalogued
    }

    /// Returns the smallest window of this provider's models that fits the size. `None` if it is
    /// the catalogue's.
    fn window(&self, provider: &str) -> Option<Tokens> {
        let models = Catalogue::embedded().models().iter();
        let windows = models.filter(|model| model.provider == provider).map(|model| model.window);
        let fitting = windows.filter(|&window| window >= self.recorded).min();
        match self.is_smaller() {
            true => fitting.filter(|&window| window < self.catalogued),
            false => Some(fitting.unwrap_or(self.recorded)),
        }
    }
}

impl SessionSpec {
    /// Reads the recorded model, window, system prompt and tools from a transcript.
    ///
    /// # Errors
    ///
    /// If the transcript cannot be read.
    pub fn of(transcript: &Transcript) -> Result<Self> {
        let (provider, model) = transcript.model()?.unzip();
        Ok(Self {
            provider,
            model,
            native: transcript.window.map(Tokens),
            auto_compacted_at: transcript.auto_compacted_at.map(Tokens),
            answered: transcript.largest_prompt()?.and_then(|n| u32::try_from(n).ok()).map(Tokens),
            system: transcript.system_prompt.clone(),
            tools: transcript.tools.clone(),
            ..Self::default()
        })
    }

    /// Sets another model than the recorded one. The recorded proof of the window is dropped, as it
    /// does not apply to that model.
    pub fn with_model(self, name: &str) -> Self {
        Self {
            provider: None,
            model: Some(name.to_owned()),
            model_source: ModelSource::Requested,
            auto_compacted_at: None,
            answered: None,
            ..self
        }
    }

    /// Sets the agent and the window of the last turn, if the transcript belongs to a session of
    /// the home.
    pub fn in_home(mut self, home: &Home, transcript: &Path) -> Self {
        let Some(agent) = home.agent_of(transcript) else { return self };
        if self.window.is_none() && self.model_source != ModelSource::Requested {
            let entry = home.stored_session(&agent, transcript);
            let window = entry.and_then(|entry| u32::try_from(entry.context_tokens?).ok());
            self.native = window.map(Tokens).or(self.native);
        }
        self.agent.get_or_insert(agent.to_string());
        self
    }

    /// Returns the window that the record proves, if it differs from the catalogue's.
    fn proven_window(&self, model: &Model) -> Option<(Tokens, WindowProof)> {
        if self.native.is_some() {
            return None;
        }
        let larger = self.answered.filter(|&prompt| prompt > model.window);
        let recorded = larger.or(self.auto_compacted_at)?;
        let proof = WindowProof { recorded, catalogued: model.window };
        Some((proof.window(&model.provider)?, proof))
    }

    /// Resolves profile, counter, model, window, reserve and engine.
    ///
    /// # Errors
    ///
    /// An invalid configuration, or an unknown model that was requested by name.
    pub fn resolve(self, config: &Config) -> Result<Resolved> {
        let config = config.for_agent(self.agent.as_deref());
        let config = match self.profile {
            Some(profile) => config.with_profile(profile),
            None => config,
        };
        let profile = config.profile();
        let system: SystemRules = config.section()?;
        let counter =
            Counter { kind: self.counter.unwrap_or(system.counter.kind), ..system.counter };
        let models: Models = config.section()?;
        let name = self.model.as_deref();
        let found = name.and_then(|name| models.find(None, name));
        let configured = found.map(|(_, model)| model);
        let catalogue = Catalogue::embedded();
        let catalogued = name.and_then(|name| catalogue.find_in(name, vintage(system.catalogue)));
        if self.model_source == ModelSource::Requested
            && configured.is_none()
            && catalogued.is_none()
        {
            catalogue.get(name.unwrap_or_default(), vintage(system.catalogue))?;
        }
        let proven = catalogued.and_then(|model| self.proven_window(model));
        let native = self.native.or(proven.map(|(window, _)| window));
        let native = native.or_else(|| catalogued.map(|m| m.window));
        let guard: window_guard::Config = config.section()?;
        let compaction = compaction::Config::resolve(&config)?;
        let window = match self.window {
            Some(given) => {
                let source = ContextWindowSource::AgentContextTokens;
                Window::new(given, source, native, &guard)
            }
            None => window(&config, &guard, name, native)?,
        };
        let reserve = self.reserve.unwrap_or_else(|| compaction.reserve(window.tokens));
        let select = SelectFor {
            engine: self.engine.as_deref(),
            agent: self.agent.as_deref(),
            // A record's provider may not be in the configuration.
            provider: None,
            model: name,
        };
        let engine = selected_engine(&config, select)?;
        let provider = self
            .provider
            .filter(|name| !name.is_empty())
            .or_else(|| found.map(|(provider, _)| provider.to_owned()))
            .or_else(|| catalogued.map(|m| m.provider.clone()));
        let prices = prices(&models, configured, name);
        let by_model = ContextWindowSource::Model;
        let count = |text: Option<String>| text.map_or(Tokens::ZERO, |text| counter.text(&text));
        let (system, tools) = (count(self.system), count(self.tools));
        Ok(Resolved {
            config,
            guard,
            compaction,
            profile,
            counter,
            proof: proven.map(|(_, proof)| proof).filter(|_| window.source == by_model),
            window,
            native,
            reserve,
            engine,
            provider,
            model: self.model,
            prices,
            system,
            tools,
        })
    }
}

fn vintage(list: PriceList) -> Vintage {
    match list {
        PriceList::Today => Vintage::Today,
        PriceList::Seed => Vintage::Seed,
    }
}

/// Returns the prices of a model: the configured prices, else the catalogue's.
fn prices(models: &Models, configured: Option<&ModelConfig>, name: Option<&str>) -> Option<Prices> {
    configured
        .and_then(configured_prices)
        .or_else(|| Some(Catalogue::embedded().find_in(name?, vintage(models.vintage))?.prices))
}

/// Returns the window from configuration and model.
fn window(
    config: &Config,
    guard: &window_guard::Config,
    model: Option<&str>,
    native: Option<Tokens>,
) -> Result<Window> {
    let mut sizes = WindowSizes::from_config(config, None, model.unwrap_or_default())?;
    sizes.model = native.or(sizes.model);
    Ok(window_guard::resolve(&sizes, guard))
}

impl Resolved {
    /// Returns the budget.
    pub fn ledger(&self) -> TokenLedger {
        TokenLedger::new(self.counter, self.window.tokens, self.reserve)
            .with_system(self.system)
            .with_tools(self.tools)
    }

    /// Fails for a window under the guard's minimum, with the guard's message. `hint` creates the
    /// hint from the smallest sufficient window; without it, the guard's hint is used.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::WindowTooSmall`].
    pub fn check_window(&self, hint: Option<fn(Tokens) -> String>) -> Result<()> {
        self.window.check().map_err(|refused| {
            let hint = match hint {
                Some(hint) => Some(hint(refused.minimum)),
                None => Error::from(refused).hint_text().map(str::to_owned),
            };
            // The message contains every fact already, so no context fields are added.
            Error::new(ErrorKind::WindowTooSmall, refused.to_string())
                .hint(hint.unwrap_or_default())
        })
    }

    /// Fails for an unknown engine.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`]; it lists the known ones.
    pub fn check_engine(&self) -> Result<()> {
        Registry::collect()?.check_engine(&self.engine.id).map_err(|error| self.with_key(error))
    }

    /// Adds the configuration key that selected the engine to an error.
    fn with_key(&self, error: Error) -> Error {
        match &self.engine.key {
            Some(key) => error.with("key", key),
            None => error,
        }
    }

    /// Returns the warning for a small window.
    pub fn warning(&self) -> Option<String> {
        let provider = self.provider.as_deref().unwrap_or("unknown");
        let model = self.model.as_deref().unwrap_or("unknown");
        let bare = model.strip_prefix(provider).and_then(|rest| rest.strip_prefix('/'));
        self.window.warning(provider, bare.unwrap_or(model))
    }

    /// Builds the engine.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] for an unknown engine, and errors of building it.
    pub fn engine(&self, services: &Services) -> Result<Arc<dyn ContextEngine>> {
        self.engine_of(&Registry::collect()?, services)
    }

    /// Builds the engine from a registry.
    pub(crate) fn engine_of(
        &self,
        registry: &Registry,
        services: &Services,
    ) -> Result<Arc<dyn ContextEngine>> {
        let context = BuildContext {
            config: &self.config,
            services,
            window: ModelWindow {
                tokens: self.window.tokens,
                native: self.native,
                source: self.window.source.name(),
            },
            registry,
        };
        registry.check_engine(&self.engine.id).map_err(|error| self.with_key(error))?;
        registry.build_engine(Some(&self.engine.id), &context)
    }
}

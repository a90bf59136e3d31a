//! From names and configuration to what a session is run with.

use std::sync::Arc;

use ctx_core::{
    ContextEngine, Counter, CounterKind, Error, ErrorKind, Profile, Result, Services, TokenLedger,
    Tokens,
};
use ctx_engine_registry::{
    BuildContext, Config, ModelWindow, Models, PriceList, Registry, SelectFor, Selection,
    selected_engine,
};
use ctx_layers::compaction;
use ctx_layers::window_guard::{self, Candidates, ContextWindowSource, Window};
use ctx_model::{Catalogue, Prices, Vintage};
use ctx_session::Transcript;

/// Links the layers, which are found by nothing but being linked.
const _: &[&str] = ctx_layers::LINKED;

/// Who named a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Asked {
    /// The caller: one that nobody knows is an error.
    ByName,
    /// A record, or a caller who gives the window as well: it may be unknown.
    #[default]
    InPassing,
}

/// What a session is to be run with. What is absent is settled from the configuration, the
/// catalogue and the profile.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Whose defaults.
    pub profile: Option<Profile>,
    /// How tokens are counted.
    pub counter: Option<CounterKind>,
    /// The engine.
    pub engine: Option<String>,
    /// The agent whose session it is.
    pub agent: Option<String>,
    /// The provider of the model.
    pub provider: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// Who named it.
    pub asked: Asked,
    /// The window, whatever the model has.
    pub window: Option<Tokens>,
    /// The model's own window, where a record says it.
    pub native: Option<Tokens>,
    /// The size at which the recorded agent compacted because the window was nearly full.
    pub auto_compacted_at: Option<Tokens>,
    /// The largest recorded prompt that the model answered.
    pub answered: Option<Tokens>,
    /// What is kept free for the answer.
    pub reserve: Option<Tokens>,
    /// The system prompt's text.
    pub system: Option<String>,
    /// The tool schemas, as JSON text.
    pub tools: Option<String>,
}

/// What a session is run with, settled before any engine is built.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The configuration, with the profile wanted.
    pub config: Config,
    /// What of it the guard of windows goes by.
    pub guard: window_guard::Config,
    /// What of it compaction goes by.
    pub compaction: compaction::Config,
    /// Whose defaults are in force.
    pub profile: Profile,
    /// How tokens are counted.
    pub counter: Counter,
    /// The window, and who says so.
    pub window: Window,
    /// The model's own window.
    pub native: Option<Tokens>,
    /// What a record proved about the window, where that is what counts.
    pub proof: Option<WindowProof>,
    /// What is kept free for the answer.
    pub reserve: Tokens,
    /// The engine that is selected, and by whom.
    pub engine: Selection,
    /// The provider of the model.
    pub provider: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// What it costs.
    pub prices: Option<Prices>,
    /// The size of the system prompt.
    pub system: Tokens,
    /// The size of the tool schemas.
    pub tools: Tokens,
}

/// A recorded size that shows another window than the catalogue's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowProof {
    /// The size of the context when the agent compacted it because the window was nearly full; or,
    /// where it is more than the catalogue's window, of a prompt that was answered.
    pub recorded: Tokens,
    /// The window of the catalogue.
    pub catalogued: Tokens,
}

impl WindowProof {
    /// Whether the window is smaller than the catalogue says.
    #[must_use]
    pub fn is_smaller(&self) -> bool {
        self.recorded <= self.catalogued
    }

    /// The window: the smallest that a model of this provider has and that the size fits. `None`
    /// where it is the catalogue's.
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

impl Wanted {
    /// What a transcript says of what it is run with: its model, its window, and its fixed part.
    ///
    /// # Errors
    ///
    /// Where the transcript cannot be read.
    pub fn of(transcript: &Transcript) -> Result<Self> {
        let (provider, model) = transcript.model()?.unzip();
        Ok(Self {
            provider,
            model,
            native: transcript.window().map(Tokens),
            auto_compacted_at: transcript.auto_compacted_at().map(Tokens),
            answered: transcript.largest_prompt()?.and_then(|n| u32::try_from(n).ok()).map(Tokens),
            system: transcript.system_prompt()?,
            tools: transcript.tools()?,
            ..Self::default()
        })
    }

    /// Takes another model than the recorded one: what the record proves of the window does not hold
    /// for it.
    #[must_use]
    pub fn with_model(self, name: &str) -> Self {
        Self {
            provider: None,
            model: Some(name.to_owned()),
            asked: Asked::ByName,
            auto_compacted_at: None,
            answered: None,
            ..self
        }
    }

    /// Settles profile, counter, model, window, reserve and engine.
    ///
    /// # Errors
    ///
    /// A configuration that makes no sense, or a model asked for by name that nobody knows.
    pub fn resolve(self, config: &Config) -> Result<Resolved> {
        let config = config.for_agent(self.agent.as_deref());
        let config = match self.profile {
            Some(profile) => config.with_profile(profile),
            None => config,
        };
        let profile = config.profile();
        let counter = match self.counter {
            Some(kind) => Counter::new(kind).with_profile_rules(profile),
            None => Counter::for_profile(profile),
        };
        let models: Models = config.section()?;
        let name = self.model.as_deref();
        let found = name.and_then(|name| models.find(None, name));
        let configured = found.map(|(_, model)| model);
        let catalogue = Catalogue::embedded();
        let catalogued = name.and_then(|name| catalogue.find_for_profile(name, profile));
        if self.asked == Asked::ByName && configured.is_none() && catalogued.is_none() {
            catalogue.get(name.unwrap_or_default(), profile)?;
        }
        let proven = catalogued.filter(|_| self.native.is_none()).and_then(|model| {
            let larger = self.answered.filter(|&prompt| prompt > model.window);
            let recorded = larger.or(self.auto_compacted_at)?;
            let proof = WindowProof { recorded, catalogued: model.window };
            Some((proof.window(&model.provider)?, proof))
        });
        let native = self.native.or(proven.map(|(window, _)| window));
        let native = native.or_else(|| catalogued.map(|m| m.window));
        let guard = window_guard::Config::resolve(&config)?;
        let compaction = compaction::Config::resolve(&config)?;
        let window = match self.window {
            Some(given) => {
                let source = ContextWindowSource::AgentContextTokens;
                Window::judge(given, source, native, &guard)
            }
            None => window(&config, &guard, name, native)?,
        };
        let reserve = match self.reserve {
            Some(reserve) => reserve,
            None => compaction.reserve(window.tokens),
        };
        let wanted = SelectFor {
            engine: self.engine.as_deref(),
            agent: self.agent.as_deref(),
            // A record's provider may be none of the configuration's.
            provider: None,
            model: name,
        };
        let engine = selected_engine(&config, wanted)?;
        let provider = self
            .provider
            .filter(|name| !name.is_empty())
            .or_else(|| found.map(|(provider, _)| provider.to_owned()))
            .or_else(|| catalogued.map(|m| m.provider.clone()));
        let vintage = match models.vintage {
            PriceList::Today => Vintage::Today,
            PriceList::Seed => Vintage::Seed,
        };
        let prices = configured
            .and_then(|m| m.cost)
            .map(|cost| Prices {
                input: cost.input,
                output: cost.output,
                cache_read: cost.cache_read,
                cache_write: cost.cache_write,
            })
            .or_else(|| catalogue.priced(name?, vintage).map(|model| model.prices));
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

/// The window that configuration and model say.
fn window(
    config: &Config,
    guard: &window_guard::Config,
    model: Option<&str>,
    native: Option<Tokens>,
) -> Result<Window> {
    let mut said = Candidates::from_config(config, None, model.unwrap_or_default())?;
    said.model = native.or(said.model);
    Ok(window_guard::resolve(&said, guard))
}

impl Resolved {
    /// The budget.
    #[must_use]
    pub fn ledger(&self) -> TokenLedger {
        TokenLedger::new(self.counter, self.window.tokens, self.reserve)
            .with_system(self.system)
            .with_tools(self.tools)
    }

    /// Refuses a window under the guard's minimum, in the guard's words. `hint` makes the advice
    /// from the smallest window that would do; without it the guard's own stands.
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
            // Its own words hold every fact already; to name them once more helps nobody.
            Error::new(ErrorKind::WindowTooSmall, refused.to_string())
                .hint(hint.unwrap_or_default())
        })
    }

    /// Refuses an engine that nobody brings.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`]; it lists the known ones.
    pub fn check_engine(&self) -> Result<()> {
        Registry::collect()?.check_engine(&self.engine.id).map_err(|error| self.named(error))
    }

    /// An error of the engine, with what names it.
    fn named(&self, error: Error) -> Error {
        match &self.engine.key {
            Some(key) => error.with("key", key),
            None => error,
        }
    }

    /// What is to be said of a window that is small.
    #[must_use]
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
    /// [`ErrorKind::NotFound`] for an engine nobody brings, and what building it may give.
    pub fn engine(&self, services: &Services) -> Result<Arc<dyn ContextEngine>> {
        self.engine_of(&Registry::collect()?, services)
    }

    /// Builds the engine, of those in a registry.
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
        registry.check_engine(&self.engine.id).map_err(|error| self.named(error))?;
        registry.build_engine(Some(&self.engine.id), &context)
    }
}

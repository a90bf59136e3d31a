//! From an id of the configuration to an engine under supervision.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use ctx_core::{ContextEngine, Counter, Error, ErrorKind, Result};

use super::{Channel, Open, Supervised, Terms};
use crate::carrier::{Answered, Caller, Carrier, Dylib, Fault, Offer, Process, Program};
use crate::find::{CarriedBy, EngineFile, Found};
use crate::{BuildContext, DEFAULT_ENGINE, EngineConfig, Plugins, Registry, Trust};

const MIB: u64 = 1 << 20;

impl Registry {
    /// Has libraries run in processes of this program, which is `ctx`, or another that calls
    /// [`host_library`](crate::carrier::host_library) when it is given `engine-host PATH`. Default: the
    /// program that is running, if it said that [it does so](crate::carrier::hosts_libraries); else
    /// there is none, and libraries run inside of the program that is running.
    #[must_use]
    pub fn with_engine_host(mut self, program: impl Into<PathBuf>) -> Self {
        self.engine_host = Some(program.into());
        self
    }

    fn engine_host(&self) -> Option<PathBuf> {
        self.engine_host.clone().or_else(crate::carrier::own_engine_host)
    }

    /// Where a library runs that is treated so.
    #[must_use]
    pub fn trust(&self, settings: &EngineConfig) -> Trust {
        settings.trust.unwrap_or_else(|| match self.engine_host() {
            Some(_) => Trust::Process,
            None => Trust::InProcess,
        })
    }

    /// Builds an installed engine, under supervision. None of its code runs before it is first
    /// asked for something.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] if it is not installed, and why it is refused if it is.
    /// [`ErrorKind::Config`] for a base that is not built in.
    pub fn build_installed(&self, id: &str, context: &BuildContext<'_>) -> Result<Supervised> {
        let found = self.find_engine(id)?;
        let plugins: Plugins = context.config.section()?;
        let config = plugins.engine(id);
        let terms = Terms {
            id: id.to_owned(),
            version: found.manifest.version.clone(),
            sha256: found.manifest.file().ok().map(|file| file.sha256.clone()),
            on_failure: plugins.on_failure(id),
            compaction: config.compaction,
            config: config.config.clone(),
            deadlines: config.deadlines_ms,
        };
        let fallback = self.build_linked(DEFAULT_ENGINE, context)?;
        let base = match config.base.as_ref().or(found.manifest.base.as_ref()) {
            None => None,
            Some(base) if base == DEFAULT_ENGINE => Some(fallback.clone()),
            Some(base) => Some(self.build_linked(base, context).map_err(|error| {
                Error::new(ErrorKind::Config, "the base of an engine must be built in")
                    .with("engine", id)
                    .with("base", base)
                    .hint("set plugins.engines.<id>.base to 'legacy', or leave it out")
                    .source(error)
            })?),
        };
        let counter = Counter::for_profile(context.config.profile());
        let mut offer = Offer::new(id).with_counter(counter);
        if let Some(models) = &context.services.summary_models {
            offer = offer.with_models(models.clone());
        }
        if let Some(store) = &context.services.store {
            offer = offer.with_store(store.clone());
        }
        let (carried_by, host) = (found.carried_by(self.trust(&config)), self.engine_host());
        if host.is_none()
            && carried_by == CarriedBy::Process
            && let EngineFile::Library(library) = &found.file
        {
            return Err(Error::new(ErrorKind::Config, "no program runs the library in a process")
                .with("engine", id)
                .with("library", library.display())
                .hint(
                    "name one by Registry::with_engine_host, or leave plugins.engines.<id>.trust out to \
                     have it run inside of this program",
                ));
        }
        let installed = Installed {
            id: id.to_owned(),
            carried_by,
            found: Arc::new(found),
            offer,
            memory: u64::from(config.memory_limit_mb).saturating_mul(MIB),
            host,
        };
        let supervised = Supervised::new(terms, Box::new(installed), fallback)
            .with_layers(self.memory_layers(context)?);
        Ok(match base {
            Some(base) => supervised.with_base(base),
            None => supervised,
        })
    }

    fn build_linked(&self, id: &str, context: &BuildContext<'_>) -> Result<Arc<dyn ContextEngine>> {
        let linked = self.linked(id).ok_or_else(|| self.unknown_engine(id))?;
        (linked.build)(context)
    }
}

/// An installed engine, as it is to be carried.
struct Installed {
    id: String,
    found: Arc<Found>,
    carried_by: CarriedBy,
    offer: Offer,
    memory: u64,
    host: Option<PathBuf>,
}

impl Installed {
    /// What runs it in a process of its own.
    fn program(&self) -> Program {
        let program = match &self.found.file {
            EngineFile::Command { program, args } => Program::new(program).with_args(args),
            EngineFile::Library(path) => {
                // One is there: else the engine was refused.
                Program::new(self.host.clone().unwrap_or_default())
                    .with_args(["engine-host".as_ref(), path.as_os_str()])
            }
        };
        let program = program.with_memory_limit(Some(self.memory));
        match self.found.path().parent() {
            Some(folder) => program.in_folder(folder),
            None => program,
        }
    }
}

impl Open for Installed {
    fn open(&self) -> std::result::Result<Box<dyn Channel>, Fault> {
        let found = self.found.clone();
        let program = match self.carried_by {
            CarriedBy::Dylib => None,
            CarriedBy::Builtin | CarriedBy::Process => Some(self.program()),
        };
        let caller = Caller::start(&self.id, move || {
            found.check_unchanged()?;
            let carrier: Box<dyn Carrier> = match &program {
                Some(program) => Box::new(Process::open(program)?),
                None => Box::new(Dylib::open(found.path())?),
            };
            // Whoever replaced it meanwhile may have had other code loaded.
            found.check_unchanged()?;
            Ok(carrier)
        })?;
        let offer = Mutex::new((None, Arc::new(self.offer.clone())));
        Ok(Box::new(Called { caller, offer }))
    }

    fn carrier(&self) -> &'static str {
        self.carried_by.name()
    }

    fn can_reopen(&self) -> bool {
        self.carried_by == CarriedBy::Process
    }

    fn features(&self) -> Vec<String> {
        self.offer.features()
    }
}

/// An engine on its own thread, with what it may ask for.
struct Called {
    caller: Caller,
    offer: Mutex<(Option<Counter>, Arc<Offer>)>,
}

#[async_trait]
impl Channel for Called {
    async fn call(
        &self,
        verb: &str,
        params: Vec<u8>,
        deadline: Duration,
    ) -> std::result::Result<Answered, Fault> {
        let offer = self.offer.lock().unwrap_or_else(PoisonError::into_inner).1.clone();
        self.caller.call(verb, &params, deadline, offer).await
    }

    fn is_lost(&self) -> bool {
        self.caller.is_lost()
    }

    fn count_with(&self, counter: Counter) {
        let mut offer = self.offer.lock().unwrap_or_else(PoisonError::into_inner);
        if offer.0 != Some(counter) {
            let counting = Offer::clone(&offer.1).with_counter(counter);
            *offer = (Some(counter), Arc::new(counting));
        }
    }
}

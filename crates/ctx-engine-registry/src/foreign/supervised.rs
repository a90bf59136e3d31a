//! The engine that hosts see: a foreign engine, and its fallback.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use ctx_core::{ContextEngine, ContextView, EngineInfo, Error, Layer, Result, TurnContext};
use ctx_engine_sdk::protocol::verb;

use super::health::{FailedCall, FailureContext, HealthRecord};
use super::live::{BackgroundCall, LiveEngine};
use super::{EngineError, Launcher, apply};
use crate::{CompactionBy, Deadlines, EngineEncoding, EngineSettings, OnFailure};

/// The default hint of a failure.
const DEFAULT_HINT: &str = "set onFailure of plugins or of plugins.engines.<id> to 'fallback', so \
                            that the default engine serves instead; or select another engine";

/// The specification of an engine, from the configuration and its manifest.
#[derive(Clone, Debug, Default)]
pub struct EngineSpec {
    /// The id it was selected by.
    pub id: String,
    /// Its version, from its manifest.
    pub version: String,
    /// The hash of its file, from its manifest.
    pub sha256: Option<String>,
    /// What happens to a turn in which it fails.
    pub on_failure: OnFailure,
    /// Whether the user grants the lease on compaction.
    pub compaction: CompactionBy,
    /// The encoding offered to it.
    pub encoding: EngineEncoding,
    /// The configuration that it gets, unchanged.
    pub config: EngineSettings,
    /// The deadlines of its calls.
    pub deadlines: Deadlines,
}

/// Time since some fixed moment.
type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// A foreign engine that cannot break its host.
///
/// It is started on first use. Every turn completes: if the engine gives no answer, or one that
/// would break the session, the fallback serves the turn from the unchanged view, unless the spec
/// says `strict`. After three such turns, or when the engine is gone, the fallback serves every
/// turn. A process is then restarted after one second, then two, then four; at most five times.
///
/// The engine compacts a session if it requests the lease and the spec allows it, until in that
/// session it misses a deadline, crashes, or gives a third answer that is rejected. If it declines
/// a compaction, or fails, the fallback compacts at once: the host stores compactions, so a
/// rejected answer has changed nothing.
#[must_use]
pub struct SupervisedEngine {
    pub(super) spec: EngineSpec,
    launcher: Box<dyn Launcher>,
    pub(super) fallback: Arc<dyn ContextEngine>,
    pub(super) base: Option<Arc<dyn ContextEngine>>,
    pub(super) layers: Vec<Box<dyn Layer>>,
    clock: Clock,
    pub(super) claimed: EngineInfo,
    pub(super) info: OnceLock<EngineInfo>,
    /// One call at a time, as the protocol requires.
    pub(super) live: tokio::sync::Mutex<LiveEngine>,
    record: Mutex<HealthRecord>,
}

ctx_core::partial_debug!(SupervisedEngine, it, health = it.record().health(it.fallback_id()));

impl SupervisedEngine {
    /// Creates the engine that `launcher` starts. If it fails, `fallback` serves.
    pub fn new(
        spec: EngineSpec,
        launcher: Box<dyn Launcher>,
        fallback: Arc<dyn ContextEngine>,
    ) -> Self {
        let started = Instant::now();
        let record = HealthRecord::new(&spec, launcher.transport());
        let claimed = EngineInfo {
            id: spec.id.clone().into(),
            name: spec.id.clone().into(),
            version: spec.version.clone().into(),
            owns_compaction: false,
        };
        Self {
            live: tokio::sync::Mutex::new(LiveEngine::new(spec.compaction)),
            spec,
            launcher,
            fallback,
            base: None,
            layers: Vec::new(),
            clock: Arc::new(move || started.elapsed()),
            claimed,
            info: OnceLock::new(),
            record: Mutex::new(record),
        }
    }

    /// Lets another engine assemble each request first. The edits of the base stay if this engine
    /// fails.
    pub fn with_base(mut self, base: Arc<dyn ContextEngine>) -> Self {
        self.base = Some(base);
        self
    }

    /// Runs layers on each request of the engine, unless it has a base, which has its own layers.
    pub(crate) fn with_layers(mut self, layers: Vec<Box<dyn Layer>>) -> Self {
        self.layers = layers;
        self
    }

    /// Sets the clock that measures the time between restarts.
    pub fn with_clock(mut self, clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Starts the engine, if it is not running and may be started. Hosts need not call this.
    ///
    /// # Errors
    ///
    /// Why it does not start, also if the spec says `fallback`.
    pub async fn start(&self) -> Result<()> {
        let mut live = self.live.lock().await;
        match self.bring_up(&mut live).await {
            Ok(()) => Ok(()),
            Err(Unavailable { error: Some(error), .. }) => Err(error),
            Err(Unavailable { why, .. }) => Err(self.unavailable(&why)),
        }
    }

    pub(super) fn record(&self) -> MutexGuard<'_, HealthRecord> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the engine that serves if it fails; `None` if failures are errors.
    pub(super) fn fallback_id(&self) -> Option<Cow<'static, str>> {
        let fallback = self.base.as_ref().unwrap_or(&self.fallback);
        (!self.is_strict()).then(|| fallback.info().id.clone())
    }

    fn is_strict(&self) -> bool {
        self.spec.on_failure == OnFailure::Strict
    }

    pub(super) async fn bring_up(&self, live: &mut LiveEngine) -> Result<(), Unavailable> {
        if live.is_up() {
            return Ok(());
        }
        self.record().start((self.clock)()).map_err(|why| Unavailable { why, error: None })?;
        let fallback = &*self.fallback.info().id;
        let base = self.base.as_ref().map_or(fallback, |base| &base.info().id);
        match live.start(&self.spec, &*self.launcher, base).await {
            Ok(info) => {
                let lease = live.leases.state();
                let mut record = self.record();
                record.started(&info.version);
                record.health.lease = lease;
                drop(record);
                // A restarted engine is the same one, so the first info stays valid.
                self.info.get_or_init(|| info);
                Ok(())
            }
            Err(mut failure) => {
                if !self.spec.config.expose().is_null() {
                    failure.blame_config(&self.spec.id);
                }
                Err(self.failed(live, None, verb::HELLO, failure))
            }
        }
    }

    /// Handles a failure, and returns why the engine did not serve.
    pub(super) fn failed(
        &self,
        live: &mut LiveEngine,
        session_id: Option<&str>,
        verb: &str,
        failure: EngineError,
    ) -> Unavailable {
        let call = FailedCall { verb, at: live.now };
        let lost_lease = session_id
            .filter(|_| failure.counts_as_strike())
            .is_some_and(|id| live.leases.failed(id, failure.is_grave()));
        let fallback = self.fallback_id();
        let context = FailureContext {
            fallback: fallback.as_deref(),
            is_lost: live.is_lost(),
            can_restart: self.launcher.can_restart(),
            lost_lease,
            now: (self.clock)(),
        };
        let mut record = self.record();
        let is_down = record.failed(&failure, call, context);
        record.health.lease = live.leases.state();
        drop(record);
        if is_down {
            live.end();
        }
        let why = format!("{}: {failure}", failure.name());
        let (key, name) = (failure.key(), failure.name());
        let error = Error::from(failure).with("engine", &self.spec.id).with("verb", verb);
        let error = error.with(key, name);
        Unavailable { why, error: Some(error) }
    }

    fn unavailable(&self, why: &str) -> Error {
        let message = format!("the context engine '{}' does not serve: {why}", self.spec.id);
        Error::new(ctx_core::ErrorKind::Contract, message).hint(DEFAULT_HINT)
    }

    /// Returns the error that ends a turn, if failures are errors.
    pub(super) fn strict_error(&self, unavailable: Unavailable) -> Result<String> {
        match unavailable {
            Unavailable { error: Some(error), .. } if self.is_strict() => {
                Err(error.hint_or(DEFAULT_HINT))
            }
            Unavailable { why, .. } if self.is_strict() => Err(self.unavailable(&why)),
            Unavailable { why, .. } => Ok(why),
        }
    }

    /// Applies the engine's edits to the view; on failure the view is unchanged.
    pub(super) async fn edit(
        &self,
        session_id: &str,
        view: &mut ContextView,
        turn: &TurnContext,
        is_based: bool,
    ) -> Result<Option<String>, Unavailable> {
        let mut live = self.live.lock().await;
        live.now = turn.now;
        self.bring_up(&mut live).await?;
        let checked = match live.assemble(session_id, view, turn, is_based).await {
            Ok(checked) => checked,
            Err(failure) => {
                return Err(self.failed(&mut live, Some(session_id), verb::ASSEMBLE, failure));
            }
        };
        let mut record = self.record();
        record.succeeded(verb::ASSEMBLE);
        checked.remark.iter().for_each(|remark| record.remark(remark));
        drop(record);
        apply(checked, view, &self.spec.id).map_err(|error| {
            let why = error.to_string();
            Unavailable { why, error: Some(error) }
        })
    }

    /// Returns the engine that assembles a request first, if any: the configured base, or the
    /// default engine if this one declares that it only adds to it.
    pub(super) async fn base_for(
        &self,
        turn: &TurnContext,
    ) -> Result<Option<Arc<dyn ContextEngine>>, Unavailable> {
        if self.base.is_some() {
            return Ok(self.base.clone());
        }
        let mut live = self.live.lock().await;
        live.now = turn.now;
        self.bring_up(&mut live).await?;
        Ok(live.wants_base().then(|| self.fallback.clone()))
    }

    /// Makes a call that no request depends on. A failure counts, and is an error if the spec says
    /// `strict`.
    pub(super) async fn pass(
        &self,
        session_id: Option<&str>,
        work: BackgroundCall,
    ) -> Result<bool> {
        let mut live = self.live.lock().await;
        if let Err(unavailable) = self.bring_up(&mut live).await {
            return self.strict_error(unavailable).map(|_| false);
        }
        let verb = work.verb();
        match live.work(session_id, work).await {
            Ok(done) => {
                self.record().succeeded(verb);
                Ok(done)
            }
            Err(failure) => {
                let unavailable = self.failed(&mut live, session_id, verb, failure);
                self.strict_error(unavailable).map(|_| false)
            }
        }
    }
}

/// Why the engine does not serve.
pub(super) struct Unavailable {
    pub(super) why: String,
    /// Set if it has just failed.
    pub(super) error: Option<Error>,
}

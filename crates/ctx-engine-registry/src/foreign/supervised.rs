//! The engine that hosts see: a foreign one, and who serves when it does not.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use ctx_core::{ContextEngine, ContextView, EngineInfo, Error, Layer, Result, TurnContext};
use ctx_engine_sdk::protocol::verb;

use super::live::{Live, Work};
use super::record::{Asked, Carried, Record};
use super::{Open, Trouble, apply};
use crate::{CompactionBy, Deadlines, EngineSettings, OnFailure};

/// What to do about a failure for which nothing better is known.
const NO_OTHER: &str = "to have the default engine serve where this one does not, set onFailure of \
                        plugins or of plugins.engines.<id> to 'fallback'; or select another engine";

/// How an engine is treated: what the configuration and its manifest say.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    /// The id it was selected by.
    pub id: String,
    /// Its version, as its manifest says.
    pub version: String,
    /// The hash of its file, as its manifest says.
    pub sha256: Option<String>,
    /// What becomes of a turn in which it fails.
    pub on_failure: OnFailure,
    /// The user's word on the lease.
    pub compaction: CompactionBy,
    /// Given to it as it is.
    pub config: EngineSettings,
    /// How long its answers may take.
    pub deadlines: Deadlines,
}

/// Time since some fixed moment.
type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// A foreign engine that cannot hurt its host.
///
/// It is started when it is first needed. Whatever it does, the turn completes: where it gives no
/// answer, or one that would break the session, the fallback serves the turn from a view that is as
/// it was, unless the terms say `strict`. After three such turns, or when it is gone, the fallback
/// serves every turn. A process is then started again, after a second, then two, then four; at most
/// five times.
///
/// The engine compacts a session if it asks for that and the terms allow it, until in that session
/// it misses a deadline, crashes, or gives a third answer that is rejected. A compaction that it
/// declines or fails is made by the fallback at once: the host stores compactions, so an answer that
/// is not taken has changed nothing.
pub struct Supervised {
    pub(super) terms: Terms,
    open: Box<dyn Open>,
    pub(super) fallback: Arc<dyn ContextEngine>,
    pub(super) base: Option<Arc<dyn ContextEngine>>,
    pub(super) layers: Vec<Box<dyn Layer>>,
    clock: Clock,
    pub(super) claimed: EngineInfo,
    pub(super) info: OnceLock<EngineInfo>,
    /// One call at a time: engines are spoken to so.
    pub(super) live: tokio::sync::Mutex<Live>,
    record: Mutex<Record>,
}

impl fmt::Debug for Supervised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supervised")
            .field("health", &self.record().health(self.stand_in()))
            .finish_non_exhaustive()
    }
}

impl Supervised {
    /// The engine that `open` starts, with `fallback` to serve when it does not.
    #[must_use]
    pub fn new(terms: Terms, open: Box<dyn Open>, fallback: Arc<dyn ContextEngine>) -> Self {
        let started = Instant::now();
        let record = Record::new(&terms, open.carrier());
        let claimed = EngineInfo {
            id: terms.id.clone().into(),
            name: terms.id.clone().into(),
            version: terms.version.clone().into(),
            owns_compaction: false,
        };
        Self {
            live: tokio::sync::Mutex::new(Live::new(terms.compaction)),
            terms,
            open,
            fallback,
            base: None,
            layers: Vec::new(),
            clock: Arc::new(move || started.elapsed()),
            claimed,
            info: OnceLock::new(),
            record: Mutex::new(record),
        }
    }

    /// Has another engine assemble each request first. What that did stays when this one fails.
    #[must_use]
    pub fn with_base(mut self, base: Arc<dyn ContextEngine>) -> Self {
        self.base = Some(base);
        self
    }

    /// Has layers look at each request that the engine made alone: without a base, which has its own.
    #[must_use]
    pub fn with_layers(mut self, layers: Vec<Box<dyn Layer>>) -> Self {
        self.layers = layers;
        self
    }

    /// Takes the time between restarts from another clock.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Starts the engine, if it is not up and may be started. Hosts need not call this.
    ///
    /// # Errors
    ///
    /// Why it does not come up, whatever the terms say.
    pub async fn start(&self) -> Result<()> {
        let mut live = self.live.lock().await;
        match self.bring_up(&mut live).await {
            Ok(()) => Ok(()),
            Err(Away { error: Some(error), .. }) => Err(error),
            Err(Away { why, .. }) => Err(self.unavailable(&why)),
        }
    }

    pub(super) fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who serves where it does not: nobody where failures are errors.
    pub(super) fn stand_in(&self) -> Option<Cow<'static, str>> {
        let stand_in = self.base.as_ref().unwrap_or(&self.fallback);
        (!self.is_strict()).then(|| stand_in.info().id.clone())
    }

    fn is_strict(&self) -> bool {
        self.terms.on_failure == OnFailure::Strict
    }

    pub(super) async fn bring_up(&self, live: &mut Live) -> Result<(), Away> {
        if live.is_up() {
            return Ok(());
        }
        self.record().start((self.clock)()).map_err(|why| Away { why, error: None })?;
        let fallback = &*self.fallback.info().id;
        let base = self.base.as_ref().map_or(fallback, |base| &base.info().id);
        match live.start(&self.terms, &*self.open, base).await {
            Ok(info) => {
                let lease = live.leases.state();
                let mut record = self.record();
                record.is_up(&info.version);
                record.lease = lease;
                drop(record);
                // A restarted engine is the same: who was told keeps what he was told.
                self.info.get_or_init(|| info);
                Ok(())
            }
            Err(mut trouble) => {
                if !self.terms.config.expose().is_null() {
                    trouble.is_of_config(&self.terms.id);
                }
                Err(self.failed(live, None, verb::HELLO, trouble))
            }
        }
    }

    /// Draws the consequences of a failure, and says why the engine did not serve.
    pub(super) fn failed(
        &self,
        live: &mut Live,
        session_id: Option<&str>,
        verb: &str,
        trouble: Trouble,
    ) -> Away {
        let asked = Asked { verb, at: live.now };
        let lost_lease = session_id
            .filter(|_| trouble.is_a_strike())
            .is_some_and(|id| live.leases.failed(id, trouble.is_grave()));
        let stand_in = self.stand_in();
        let carried = Carried {
            stand_in: stand_in.as_deref(),
            is_lost: live.is_lost(),
            can_reopen: self.open.can_reopen(),
            lost_lease,
            now: (self.clock)(),
        };
        let mut record = self.record();
        let is_down = record.failed(&trouble, asked, carried);
        record.lease = live.leases.state();
        drop(record);
        if is_down {
            live.end();
        }
        let why = format!("{}: {trouble}", trouble.name());
        let (fact, name) = (trouble.fact(), trouble.name());
        let error = Error::from(trouble).with("engine", &self.terms.id).with("verb", verb);
        let error = error.with(fact, name);
        Away { why, error: Some(error) }
    }

    fn unavailable(&self, why: &str) -> Error {
        let message = format!("the context engine '{}' does not serve: {why}", self.terms.id);
        Error::new(ctx_core::ErrorKind::Contract, message).hint(NO_OTHER)
    }

    /// The error that a turn ends with, where failures are errors.
    pub(super) fn strict_error(&self, away: Away) -> Result<String> {
        match away {
            Away { error: Some(error), .. } if self.is_strict() => Err(match error.hint_text() {
                Some(_) => error,
                None => error.hint(NO_OTHER),
            }),
            Away { why, .. } if self.is_strict() => Err(self.unavailable(&why)),
            Away { why, .. } => Ok(why),
        }
    }

    /// The engine's own part of a request: its edits are in the view, or the view is as it was.
    pub(super) async fn edit(
        &self,
        session_id: &str,
        view: &mut ContextView,
        turn: &TurnContext,
        is_based: bool,
    ) -> Result<Option<String>, Away> {
        let mut live = self.live.lock().await;
        live.now = turn.now;
        self.bring_up(&mut live).await?;
        let checked = match live.assemble(session_id, view, turn, is_based).await {
            Ok(checked) => checked,
            Err(trouble) => {
                return Err(self.failed(&mut live, Some(session_id), verb::ASSEMBLE, trouble));
            }
        };
        let mut record = self.record();
        record.did(verb::ASSEMBLE);
        checked.remarks.iter().for_each(|remark| record.remark(remark));
        drop(record);
        apply(checked, view, &self.terms.id).map_err(|error| {
            let why = error.to_string();
            Away { why, error: Some(error) }
        })
    }

    /// The engine that is to assemble a request first, if any: the one that was configured, or the
    /// default engine where this one says that it only adds to it.
    pub(super) async fn base_for(
        &self,
        turn: &TurnContext,
    ) -> Result<Option<Arc<dyn ContextEngine>>, Away> {
        if self.base.is_some() {
            return Ok(self.base.clone());
        }
        let mut live = self.live.lock().await;
        live.now = turn.now;
        self.bring_up(&mut live).await?;
        Ok(live.wants_base().then(|| self.fallback.clone()))
    }

    /// Passes on what no request depends on. A failure counts, and is an error where `strict`.
    pub(super) async fn pass(&self, session_id: Option<&str>, work: Work) -> Result<bool> {
        let mut live = self.live.lock().await;
        if let Err(away) = self.bring_up(&mut live).await {
            return self.strict_error(away).map(|_| false);
        }
        let verb = work.verb();
        match live.work(session_id, work).await {
            Ok(done) => {
                self.record().did(verb);
                Ok(done)
            }
            Err(trouble) => {
                let away = self.failed(&mut live, session_id, verb, trouble);
                self.strict_error(away).map(|_| false)
            }
        }
    }
}

/// Why the engine does not serve.
pub(super) struct Away {
    pub(super) why: String,
    /// Where it has just failed.
    pub(super) error: Option<Error>,
}

//! The runtime: sessions that are open, and turns in their lanes.

mod builder;
mod counts;
mod lifecycle;
mod listener;
mod outcome;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

#[cfg(doc)]
use ctx_core::ErrorKind;
use ctx_core::{ChatModel, CompactResult, Error, Result, Timestamp, Toolbox};
use ctx_engine_registry::Config;
use ctx_session::group_commit::GroupCommit;
use ctx_session::key::{FileId, SessionKey};
use ctx_session::paths::Home;
use tracing::Instrument;

pub use builder::{Builder, Clock, SILENCE};
pub use counts::LayerAction;
pub use ctx_layers::memory::workspace::Access as WorkspaceAccess;
pub use lifecycle::{Lifecycle, Lived, OneSession};
pub use listener::{Deaf, Event, Listener, Notice, NoticeKind};
pub use outcome::{Fill, Input, TurnOutcome};

pub(crate) use builder::Settings;
pub(crate) use counts::{Counts, layer};

use crate::lanes::Lanes;
use crate::lifecycle::{Job, MaintenanceMode, MaintenanceReport, Run, SessionConfig, Upkeep};
use crate::session::{self, Agents, Book, Opened, Session, blocking, locked};
use crate::subagents::{Engines, Seats};
use crate::turn::{Background, Turn};

/// What a session is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// A message came: one that is over gives way to another.
    Message,
    /// Another one is wanted, whatever was before.
    Anew,
    /// Something is done to it that is no message.
    AsItIs,
}

/// Holds conversations: a message in, an answer out, whatever happens in between.
///
/// # What
///
/// A turn runs in the lane of its session, one after another. It settles the model by the window
/// guard, stores the message, and then makes requests until the model is done: the engine of the
/// slot assembles each from the session's file, tools are run one by one, what the provider refuses
/// as too long is made smaller, and what fails is tried again or handed to the next model. The
/// answer is on disk when [`turn`](Self::turn) returns.
///
/// # Notes
///
/// A turn whose future is dropped is over: what it had stored stays, whole lines and nothing else,
/// and calls without results are answered as failed when the session is next used.
///
/// Sessions stay open, and locked against other processes, until [`close`](Self::close), or until
/// the last clone of the runtime is gone.
#[derive(Clone)]
pub struct Runtime {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) home: Home,
    pub(crate) config: Config,
    pub(crate) models: Vec<Arc<dyn ChatModel>>,
    pub(crate) settings: Settings,
    pub(crate) lifecycle: Arc<dyn Lifecycle>,
    pub(crate) lanes: Lanes,
    pub(crate) group: Arc<GroupCommit>,
    pub(crate) agents: Arc<Agents>,
    pub(crate) book: Arc<Book>,
    pub(crate) engines: Arc<Engines>,
    pub(crate) seats: Arc<Seats>,
    pub(crate) upkeep: Arc<Upkeep>,
    pub(crate) counts: Arc<Counts>,
    /// Sessions that nobody is working on.
    idle: Mutex<HashMap<SessionKey, Session>>,
    /// Compactions that are being written beside the turns.
    pub(crate) background: Mutex<HashMap<SessionKey, Background>>,
}

impl Inner {
    pub(crate) fn new(
        builder: Builder,
        lifecycle: Arc<dyn Lifecycle>,
        group: Arc<GroupCommit>,
        lanes: Lanes,
    ) -> Self {
        Self {
            book: Arc::new(Book::new(builder.home.clone())),
            home: builder.home,
            config: builder.config,
            models: builder.models,
            settings: builder.settings,
            lifecycle,
            lanes,
            group,
            agents: Arc::default(),
            counts: Arc::default(),
            engines: Arc::default(),
            seats: Arc::default(),
            upkeep: Arc::default(),
            idle: Mutex::default(),
            background: Mutex::default(),
        }
    }

    /// The same home and the same lanes, for sessions that are run with something else.
    pub(crate) fn derived(&self, models: Vec<Arc<dyn ChatModel>>, settings: Settings) -> Self {
        Self {
            home: self.home.clone(),
            config: self.config.clone(),
            models,
            settings,
            lifecycle: self.lifecycle.clone(),
            lanes: self.lanes.clone(),
            group: self.group.clone(),
            agents: self.agents.clone(),
            book: self.book.clone(),
            engines: self.engines.clone(),
            seats: self.seats.clone(),
            upkeep: self.upkeep.clone(),
            counts: self.counts.clone(),
            idle: Mutex::default(),
            background: Mutex::default(),
        }
    }

    pub(crate) fn close(&self, key: &SessionKey) -> Option<Session> {
        locked(&self.background).remove(key);
        locked(&self.idle).remove(key)
    }
}

impl Runtime {
    /// Begins to make one, over the files of `home`.
    pub fn builder(home: Home, config: Config) -> Builder {
        Builder::new(home, config)
    }

    /// Answers a message in the session of `key`, which is begun if there is none. It waits for its
    /// turn in the session's lane.
    ///
    /// # Errors
    ///
    /// [`WindowTooSmall`](ErrorKind::WindowTooSmall) if no model's window is large enough;
    /// [`CompactionFailure`](ErrorKind::CompactionFailure) if the request stayed too long for the
    /// model; [`Conflict`](ErrorKind::Conflict) if the session waits for the caller;
    /// [`NotFound`](ErrorKind::NotFound) if the session's file is gone; what the last model of the
    /// chain failed with; and what reading and writing may give. What was stored before stays.
    pub async fn turn(
        &self,
        key: &SessionKey,
        message: impl Into<Input>,
        tools: &dyn Toolbox,
        listener: &mut dyn Listener,
    ) -> Result<TurnOutcome> {
        let message = message.into();
        let span = tracing::info_span!("turn", session = %key);
        let work = async {
            let opening = match crate::turn::begins_anew(&message) {
                true => Opening::Anew,
                false => Opening::Message,
            };
            let (session, notices) = self.take(key, opening).await?;
            let mut turn = Turn::new(self, session, tools, listener);
            turn.say_of_opening(notices);
            let done = turn.run(message).await;
            let session = turn.into_session();
            self.put_back(session, done.as_ref().err()).await;
            done
        };
        let done = self.inner.lanes.run(key.clone(), work.instrument(span)).await;
        self.look_after(key);
        done
    }

    /// Compacts a session, after what is going on in it. `focus` is what the summary should dwell
    /// on. This is for callers outside of its turns: within one it is a
    /// [`Conflict`](ErrorKind::Conflict), as the session waits for the turn, and the turn for this.
    ///
    /// # Errors
    ///
    /// As [`turn`](Self::turn), and what the engine's compaction may give.
    pub async fn compact(&self, key: &SessionKey, focus: Option<&str>) -> Result<CompactResult> {
        let span = tracing::info_span!("compact", session = %key);
        let work = async {
            let (session, _) = self.take(key, Opening::AsItIs).await?;
            let mut deaf = Deaf;
            let mut turn = Turn::new(self, session, &ctx_core::NoTools, &mut deaf);
            let done = turn.compact_by_hand(focus).await;
            let session = turn.into_session();
            self.put_back(session, done.as_ref().err()).await;
            done
        };
        self.inner.lanes.run(key.clone(), work.instrument(span)).await
    }

    /// Closes a session, after what is going on in it, so that other processes may have it.
    ///
    /// # Errors
    ///
    /// What making its last entries durable may give.
    pub async fn close(&self, key: &SessionKey) -> Result<()> {
        self.inner.lanes.run(key.clone(), self.closed(key)).await
    }

    /// How often each layer did what, in all sessions since the runtime was made.
    #[must_use]
    pub fn layer_actions(&self) -> Vec<LayerAction> {
        self.inner.counts.list()
    }

    async fn closed(&self, key: &SessionKey) -> Result<()> {
        let session = self.inner.close(key);
        if let Some(session) = &session {
            session.let_go_of_engine().await;
        }
        let inner = self.inner.clone();
        blocking(move || {
            let committed = session.map_or(Ok(()), |session| session.log().commit());
            inner.book.write()?;
            committed
        })
        .await
    }

    /// Maintains the sessions of an agent as `session.maintenance` says, whatever its mode; with
    /// `dry_run` nothing is changed. This is done after turns as well, at most once an hour. What this
    /// or another runtime has open stays.
    ///
    /// # Errors
    ///
    /// If the store or the folder of sessions cannot be read. What goes wrong with one session is in
    /// the report.
    pub async fn maintain(&self, agent: &FileId, dry_run: bool) -> Result<MaintenanceReport> {
        let (inner, agent) = (self.inner.clone(), agent.clone());
        blocking(move || {
            inner.book.write()?;
            let memory = inner.agents.memory(&agent);
            let now = (inner.settings.clock)();
            let run = Run::of(&inner.home, &inner.config, &agent, memory, now)?;
            run.dry(dry_run).run(&mut |_, _| {})
        })
        .await
    }

    /// Looks after the agent's other sessions when it is time to, beside what comes next.
    fn look_after(&self, key: &SessionKey) {
        let inner = &self.inner;
        let agent = key.agent().cloned().unwrap_or_else(FileId::main);
        if !inner.upkeep.is_due(&agent, inner.settings.timer.elapsed()) {
            return;
        }
        let now = (inner.settings.clock)();
        let stale = self.stale(now);
        let runtime = (!stale.is_empty()).then(|| self.clone());
        let closed = async move {
            let Some(runtime) = runtime else { return };
            for key in stale {
                if let Err(error) = runtime.close(&key).await {
                    tracing::warn!(%key, "the session was not closed: {error}");
                }
            }
        };
        let (home, config) = (inner.home.clone(), inner.config.clone());
        let memory = inner.agents.memory(&agent);
        inner.upkeep.begin(Job { home, config, agent, memory, now }, closed);
    }

    /// Sessions that are open, and that nobody used for so long that they are to go.
    fn stale(&self, now: Timestamp) -> Vec<SessionKey> {
        let config = self.inner.config.section::<SessionConfig>().unwrap_or_default().maintenance;
        if config.mode == MaintenanceMode::Warn {
            return Vec::new();
        }
        let oldest = now.0.saturating_sub(config.prune_after.millis());
        let idle = locked(&self.inner.idle);
        let stale = idle.iter().filter(|(_, session)| session.newest.0 < oldest);
        stale.map(|(key, _)| key.clone()).collect()
    }

    pub(crate) async fn take(
        &self,
        key: &SessionKey,
        opening: Opening,
    ) -> Result<(Session, Vec<String>)> {
        let idle = locked(&self.inner.idle).remove(key);
        if let Some(session) = idle {
            let now = (self.inner.settings.clock)();
            let is_over = || {
                let lived = Lived { began: session.began, last: session.newest };
                self.inner.lifecycle.is_over(key, lived, now)
            };
            let ends = match opening {
                Opening::Anew => true,
                Opening::AsItIs => false,
                Opening::Message => is_over(),
            };
            if !ends {
                // Where its file is not, nothing that is in memory counts.
                session.check_file()?;
                return Ok((session, Vec::new()));
            }
            session.let_go_of_engine().await;
            drop(session);
            self.closed(key).await?;
        }
        let (inner, key) = (self.inner.clone(), key.clone());
        let Opened { session, notices } =
            blocking(move || session::open(&inner, &key, opening)).await?;
        Ok((session, notices))
    }

    /// After an error the session is closed: what is in memory may be half of what is on disk, and
    /// calls may be left open. Whoever opens it next mends that.
    pub(crate) async fn put_back(&self, session: Session, error: Option<&Error>) {
        if error.is_none() {
            let mut idle = locked(&self.inner.idle);
            idle.insert(session.key.clone(), session);
            forget_views(&mut idle, MOST_HELD);
            return;
        }
        session.let_go_of_engine().await;
        // The error that there was says more than one of closing.
        let _ = blocking(move || {
            drop(session);
            Ok(())
        })
        .await;
    }
}

/// How many tokens of messages sessions that are idle keep in memory, all together: some 400 MB.
const MOST_HELD: u64 = 64_000_000;

/// Takes views out of idle sessions, those that were not used for longest first, until they hold no
/// more than that. Who needs one again makes it from the file.
fn forget_views(idle: &mut HashMap<SessionKey, Session>, most: u64) {
    let mut held: u64 = idle.values().map(Session::held).sum();
    while held > most {
        let with_view = idle.values_mut().filter(|session| session.view.is_some());
        let Some(oldest) = with_view.min_by_key(|session| session.newest) else { return };
        held = held.saturating_sub(oldest.held());
        oldest.view = None;
    }
}

#[cfg(test)]
mod tests;

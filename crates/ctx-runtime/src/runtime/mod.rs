//! The runtime: sessions that are open, and turns in their lanes.

mod builder;
mod counts;
mod idle;
mod lifecycle;
mod listener;
mod outcome;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[cfg(doc)]
use ctx_core::ErrorKind;
use ctx_core::{ChatModel, CompactResult, Error, Result, Timestamp, Toolbox};
use ctx_engine_registry::{Config, Registry};
use ctx_session::group_commit::GroupCommit;
use ctx_session::key::{FileId, SessionKey};
use ctx_session::paths::Home;
use tracing::Instrument;

pub use builder::{Builder, Clock, LONGEST_WAIT, SILENCE};
pub use counts::LayerAction;
pub use ctx_layers::memory::workspace::Access as WorkspaceAccess;
pub use lifecycle::{Lifecycle, Lived, OneSession};
pub use listener::{Deaf, Event, Listener, Notice, NoticeKind};
pub use outcome::{Fill, Input, TurnOutcome};

pub(crate) use builder::{MakeMemory, Settings};
pub(crate) use counts::{Counts, layer};

use idle::Idle;

use crate::Remembering;
use crate::lanes::Lanes;
use crate::lifecycle::{Due, Job, MaintenanceMode, MaintenanceReport, Run, SessionConfig, Upkeep};
use crate::session::{self, Agents, Book, Hands, Opened, Session, blocking, locked};
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
/// Sessions stay open, and locked against other processes, until [`close`](Self::close), until the
/// last clone of the runtime is gone, or until more are open than may be
/// ([`Builder::open_sessions`]).
#[derive(Clone)]
pub struct Runtime {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) home: Home,
    pub(crate) config: Config,
    pub(crate) models: Vec<Arc<dyn ChatModel>>,
    pub(crate) settings: Settings,
    pub(crate) registry: Registry,
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
    idle: Idle,
    hands: Hands,
    /// Compactions that are being written beside the turns.
    pub(crate) background: Mutex<HashMap<SessionKey, Background>>,
}

impl Inner {
    pub(crate) fn new(
        builder: Builder,
        registry: Registry,
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
            registry,
            lifecycle,
            lanes,
            group,
            agents: Arc::default(),
            counts: Arc::default(),
            engines: Arc::default(),
            seats: Arc::default(),
            upkeep: Arc::default(),
            idle: Idle::default(),
            hands: Hands::default(),
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
            registry: self.registry.clone(),
            lifecycle: self.lifecycle.clone(),
            lanes: self.lanes.clone(),
            group: self.group.clone(),
            agents: self.agents.clone(),
            book: self.book.clone(),
            engines: self.engines.clone(),
            seats: self.seats.clone(),
            upkeep: self.upkeep.clone(),
            counts: self.counts.clone(),
            idle: Idle::default(),
            hands: Hands::default(),
            background: Mutex::default(),
        }
    }

    /// How many tokens compactions hold that are being written beside the turns.
    pub(crate) fn held_by_background(&self) -> u64 {
        locked(&self.background).values().map(Background::held).sum()
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
        // What is below is on the heap: a tool may run another turn, and one of that another.
        let work = async {
            let opening = crate::turn::opening(&message);
            let (session, notices) = Box::pin(self.take(key, opening)).await?;
            let mut turn = Turn::new(self, session, tools, listener);
            turn.say_of_opening(notices);
            let done = Box::pin(turn.run(message)).await;
            let session = turn.into_session();
            Box::pin(self.put_back(session, done.as_ref().err())).await;
            done
        };
        let done = self.inner.lanes.run(key.clone(), Box::pin(work.instrument(span))).await;
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
            let done = Box::pin(turn.compact_by_hand(focus)).await;
            let session = turn.into_session();
            Box::pin(self.put_back(session, done.as_ref().err())).await;
            done
        };
        self.inner.lanes.run(key.clone(), Box::pin(work.instrument(span))).await
    }

    /// Closes a session, after what is going on in it, so that other processes may have it. What is
    /// made for its memory beside the turns, vectors and facts by a model, is waited for, ten seconds
    /// at most.
    ///
    /// # Errors
    ///
    /// What making its last entries durable may give.
    pub async fn close(&self, key: &SessionKey) -> Result<()> {
        let mut memory = self.let_go(key).await?;
        for words in memory.close().await {
            tracing::warn!(%key, "{words}");
        }
        Ok(())
    }

    /// Closes a session, and hands its memory out: what is done for it goes on by itself.
    pub(crate) async fn let_go(&self, key: &SessionKey) -> Result<Remembering> {
        let work = async { self.closed(key, self.inner.idle.take(key)).await };
        self.inner.lanes.run(key.clone(), work).await
    }

    /// How often each layer did what, in all sessions since the runtime was made.
    #[must_use]
    pub fn layer_actions(&self) -> Vec<LayerAction> {
        self.inner.counts.list()
    }

    async fn closed(&self, key: &SessionKey, mut session: Option<Session>) -> Result<Remembering> {
        locked(&self.inner.background).remove(key);
        if let Some(session) = &session {
            session.let_go_of_engine().await;
        }
        let setting = session.as_mut().and_then(|session| session.setting.as_mut());
        let memory = setting.map(|setting| std::mem::take(&mut setting.memory));
        let inner = self.inner.clone();
        blocking(move || {
            let committed = session.as_ref().map_or(Ok(()), |session| session.log().commit());
            // While the session is locked: who finds it free finds when it was last used.
            inner.book.write()?;
            committed
        })
        .await?;
        Ok(memory.unwrap_or_default())
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

    /// Has the maintenance that follows turns come to its end, in `longest`, or else with the session
    /// that it is at; there is none after that. For a program that is about to end: it would be waited
    /// for, however long it takes.
    pub async fn end_maintenance(&self, longest: Duration) {
        let inner = &self.inner;
        tokio::select! {
            biased;
            () = inner.upkeep.settled() => {}
            () = inner.settings.timer.sleep(longest) => {}
        }
        inner.upkeep.stop();
    }

    /// Looks after the agent's other sessions when it is time to, beside what comes next.
    fn look_after(&self, key: &SessionKey) {
        let inner = &self.inner;
        let agent = key.agent().cloned().unwrap_or_else(FileId::main);
        let due = inner.upkeep.due(&agent, inner.settings.timer.elapsed());
        if due == Due::No {
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
        inner.upkeep.begin(Job { home, config, agent, memory, now, due }, closed);
    }

    /// Sessions that are open, and that nobody used for so long that they are to go.
    fn stale(&self, now: Timestamp) -> Vec<SessionKey> {
        let config = self.inner.config.section::<SessionConfig>().unwrap_or_default().maintenance;
        if config.mode == MaintenanceMode::Warn {
            return Vec::new();
        }
        let oldest = now.0.saturating_sub(config.prune_after.millis());
        self.inner.idle.unused_since(Timestamp(oldest))
    }

    pub(crate) async fn take(
        &self,
        key: &SessionKey,
        opening: Opening,
    ) -> Result<(Session, Vec<String>)> {
        if let Some(session) = self.inner.idle.take(key) {
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
            self.closed(key, Some(session)).await?;
        }
        // Somebody's turn may have been dropped while it worked on the disk.
        self.inner.hands.free(key).await;
        let hand = self.inner.hands.take(key);
        self.close_excess().await;
        let (inner, key) = (self.inner.clone(), key.clone());
        let Opened { session, notices } =
            blocking(move || session::open(&inner, &key, opening, hand)).await?;
        Ok((session, notices))
    }

    /// After an error the session is closed: what is in memory may be half of what is on disk, and
    /// calls may be left open. Whoever opens it next mends that.
    pub(crate) async fn put_back(&self, mut session: Session, error: Option<&Error>) {
        let inner = &self.inner;
        if let Some(setting) = &mut session.setting {
            setting.memory.tend();
        }
        if error.is_some() {
            session.let_go_of_engine().await;
            // The error that there was says more than one of closing.
            return closed_quietly(session).await;
        }
        inner.idle.keep(session, inner.held_by_background());
    }

    /// Closes sessions that nobody works on where more are open than may be.
    async fn close_excess(&self) {
        let inner = &self.inner;
        let excess = inner.idle.excess(inner.hands.len(), inner.settings.open_sessions);
        if excess.is_empty() {
            return;
        }
        for mut closing in excess {
            if let Some(session) = closing.let_go().await {
                locked(&inner.background).remove(&session.key);
                closed_quietly(session).await;
            }
        }
        let (book, now) = (inner.book.clone(), inner.settings.timer.elapsed());
        if let Err(error) = blocking(move || book.write_if_due(now)).await {
            tracing::warn!("the counters of sessions were not written: {error}");
        }
    }
}

/// Closes a session. What was acknowledged is on disk without.
async fn closed_quietly(session: Session) {
    let done = blocking(move || {
        drop(session);
        Ok(())
    });
    if let Err(error) = done.await {
        tracing::warn!("a session was not closed: {error}");
    }
}

#[cfg(test)]
mod tests;

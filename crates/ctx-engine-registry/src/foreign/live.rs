//! The engine that is up, if one is, and what outlives it when it is started again.

use std::collections::{HashMap, HashSet, VecDeque};

use ctx_core::{
    BootstrapRequest, CompactRequest, ContextView, EngineInfo, IngestRequest, SubagentEnd,
    SubagentSpawn, Timestamp, TurnContext,
};
use ctx_engine_sdk::protocol::{self, Bootstrapped, Done, Hello, HostInfo, PROTOCOL, verb};

use super::lease::Leases;
use super::rejection::tidy;
use super::{Checked, Foreign, Open, Outcome, Terms, Trouble};
use crate::CompactionBy;

/// An engine that takes in no turn is not told of more than these once it does.
const MOST_ENDED: usize = 1_024;

/// What no request depends on.
#[derive(Debug)]
pub(super) enum Work {
    Ingest(IngestRequest),
    CommitTurns,
    OfSession { verb: &'static str, session_id: String },
    Spawn { verb: &'static str, spawn: protocol::SubagentSpawn },
    Ended(protocol::SubagentEnded),
}

impl Work {
    pub(super) fn spawn(verb: &'static str, spawn: &SubagentSpawn) -> Self {
        let spawn = protocol::SubagentSpawn {
            parent_session_key: spawn.parent_session_key.clone(),
            child_session_key: spawn.child_session_key.clone(),
            ttl_ms: spawn.ttl_ms,
        };
        Self::Spawn { verb, spawn }
    }

    pub(super) fn ended(child_session_key: &str, reason: SubagentEnd) -> Self {
        Self::Ended(protocol::SubagentEnded {
            child_session_key: child_session_key.to_owned(),
            reason: match reason {
                SubagentEnd::Deleted => protocol::SubagentReason::Deleted,
                SubagentEnd::Completed | SubagentEnd::Failed => protocol::SubagentReason::Completed,
                SubagentEnd::Swept => protocol::SubagentReason::Swept,
                SubagentEnd::Released => protocol::SubagentReason::Released,
            },
            failed: reason == SubagentEnd::Failed,
        })
    }

    pub(super) fn verb(&self) -> &'static str {
        match self {
            Self::Ingest(_) => verb::INGEST,
            Self::CommitTurns => verb::COMMIT_TURN,
            Self::OfSession { verb, .. } | Self::Spawn { verb, .. } => verb,
            Self::Ended(_) => verb::ON_SUBAGENT_ENDED,
        }
    }
}

/// The engine that is up, if one is.
pub(super) struct Live {
    foreign: Option<Foreign>,
    pub(super) leases: Leases,
    /// The time of the last turn.
    pub(super) now: Timestamp,
    /// Sessions that came up with a history.
    histories: HashMap<String, Option<String>>,
    /// Those of them that this engine, since it is up, was told of.
    bootstrapped: HashSet<String>,
    /// Turns that it was not told of yet, with their sessions, oldest first.
    ended: VecDeque<(String, String)>,
}

impl Live {
    pub(super) fn new(compaction: CompactionBy) -> Self {
        Self {
            foreign: None,
            leases: Leases::new(false, compaction),
            now: Timestamp::default(),
            histories: HashMap::new(),
            bootstrapped: HashSet::new(),
            ended: VecDeque::new(),
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.foreign.is_some()
    }

    pub(super) fn is_lost(&self) -> bool {
        self.foreign.as_ref().is_none_or(Foreign::is_lost)
    }

    /// Ends the engine.
    pub(super) fn end(&mut self) {
        self.foreign = None;
        self.bootstrapped.clear();
    }

    /// Starts it, and says who it is.
    pub(super) async fn start(
        &mut self,
        terms: &Terms,
        open: &dyn Open,
        base: &str,
    ) -> Result<EngineInfo, Trouble> {
        self.end();
        let hello = Hello {
            protocol: PROTOCOL.into(),
            host: HostInfo { name: "ctx".into(), version: env!("CARGO_PKG_VERSION").into() },
            features: open.features(),
            config: terms.config.expose().clone(),
        };
        let channel = open.open()?;
        let foreign = Foreign::start(&terms.id, channel, &hello, terms.deadlines).await?;
        let info = foreign.info();
        if let Some(wanted) = info.contract.base.as_deref().filter(|&wanted| wanted != base) {
            return Err(Trouble::Unfit {
                why: format!("it runs after the engine '{}', and '{base}' does", tidy(wanted)),
                hint: "set plugins.engines.<id>.base to the engine that is to run first",
            });
        }
        self.leases.set_asked(info.contract.owns_compaction);
        let version = tidy(&info.version);
        let info = EngineInfo {
            id: terms.id.clone().into(),
            name: tidy(&info.name).into(),
            version: version.into(),
            owns_compaction: info.contract.owns_compaction,
        };
        self.foreign = Some(foreign);
        Ok(info)
    }

    /// Notes that a session has a history: an engine that is started again is told so.
    pub(super) fn knows_history(&mut self, request: BootstrapRequest) {
        self.bootstrapped.remove(&request.session_id);
        self.histories.insert(request.session_id, request.session_file);
    }

    /// Whether the engine only adds to what another one does.
    pub(super) fn wants_base(&self) -> bool {
        self.foreign.as_ref().is_some_and(|foreign| foreign.info().contract.base.is_some())
    }

    /// Notes that a turn's messages are stored for good. The engine is told until it takes it in.
    pub(super) fn has_ended(&mut self, session_id: &str, key: &str) {
        if self.ended.len() >= MOST_ENDED {
            self.ended.pop_front();
        }
        self.ended.push_back((session_id.to_owned(), key.to_owned()));
    }

    /// Has the engine take in a session's history, if it has one and the engine was not told.
    pub(super) async fn bootstrap(&mut self, session_id: &str) -> Result<Bootstrapped, Trouble> {
        let Some(file) = self.histories.get(session_id) else {
            return Ok(Bootstrapped::default());
        };
        if !self.bootstrapped.insert(session_id.to_owned()) {
            return Ok(Bootstrapped::default());
        }
        let session_file = file.clone();
        let session_id = session_id.to_owned();
        self.foreign()?.bootstrap(protocol::Bootstrap { session_id, session_file }).await
    }

    pub(super) async fn assemble(
        &mut self,
        session_id: &str,
        view: &ContextView,
        turn: &TurnContext,
        adds_only: bool,
    ) -> Result<Checked, Trouble> {
        self.bootstrap(session_id).await?;
        self.foreign()?.assemble(session_id, view, turn, adds_only).await
    }

    pub(super) async fn compact(&mut self, request: &CompactRequest) -> Result<Outcome, Trouble> {
        self.bootstrap(&request.session_id).await?;
        self.foreign()?.compact(request).await
    }

    pub(super) async fn work(
        &mut self,
        session_id: Option<&str>,
        work: Work,
    ) -> Result<bool, Trouble> {
        if let Some(session_id) = session_id {
            self.bootstrap(session_id).await?;
        }
        let foreign = self.foreign.as_mut().ok_or_else(not_up)?;
        match work {
            Work::Ingest(request) => foreign.ingest(&request).await,
            Work::CommitTurns => {
                while let Some((session_id, key)) = self.ended.front() {
                    foreign.commit_turn(session_id, key).await?;
                    self.ended.pop_front();
                }
                Ok(true)
            }
            Work::OfSession { verb, session_id } => {
                foreign.of_session(verb, &session_id).await.map(|()| true)
            }
            Work::Spawn { verb, spawn } => foreign.tell::<Done>(verb, &spawn).await.map(|()| true),
            Work::Ended(ended) => {
                let done = foreign.tell::<Done>(verb::ON_SUBAGENT_ENDED, &ended).await;
                done.map(|()| true)
            }
        }
    }

    pub(super) async fn dispose(&mut self) -> Result<(), Trouble> {
        let done = match &mut self.foreign {
            Some(foreign) => foreign.dispose().await,
            None => Ok(()),
        };
        self.end();
        done
    }

    fn foreign(&mut self) -> Result<&mut Foreign, Trouble> {
        self.foreign.as_mut().ok_or_else(not_up)
    }
}

fn not_up() -> Trouble {
    Trouble::Unfit { why: "it is not up".into(), hint: "start it again" }
}

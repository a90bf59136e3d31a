//! The running engine, if there is one, and the state that survives its restarts.

use std::collections::{HashMap, HashSet, VecDeque};

use ctx_core::{
    BootstrapRequest, CompactRequest, ContextView, EngineInfo, IngestRequest, SubagentEnd,
    SubagentSpawn, Timestamp, TurnContext,
};
use ctx_engine_sdk::protocol::{
    self, Bootstrapped, Done, Encoding, Hello, HostInfo, PROTOCOL, verb,
};

use super::lease::Leases;
use super::rejection::tidy;
use super::{CheckedPlan, CompactionOutcome, EngineClient, EngineError, EngineSpec, Launcher};
use crate::{CompactionBy, EngineEncoding};

/// Maximum number of ended turns that are kept until the engine accepts them.
const MAX_ENDED: usize = 1_024;

/// A call that no request depends on.
#[derive(Debug)]
pub(super) enum BackgroundCall {
    Ingest(IngestRequest),
    CommitTurns,
    SessionVerb { verb: &'static str, session_id: String },
    Spawn { verb: &'static str, spawn: protocol::SubagentSpawn },
    Ended(protocol::SubagentEnded),
}

impl BackgroundCall {
    pub(super) fn of_session(verb: &'static str, session_id: &str) -> Self {
        Self::SessionVerb { verb, session_id: session_id.to_owned() }
    }

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
            Self::SessionVerb { verb, .. } | Self::Spawn { verb, .. } => verb,
            Self::Ended(_) => verb::ON_SUBAGENT_ENDED,
        }
    }
}

/// The running engine, if there is one.
pub(super) struct LiveEngine {
    client: Option<EngineClient>,
    pub(super) leases: Leases,
    /// The time of the last turn.
    pub(super) now: Timestamp,
    /// Opened sessions that have a history.
    histories: HashMap<String, Option<String>>,
    /// The sessions of `histories` that were reported to the running engine.
    bootstrapped: HashSet<String>,
    /// Ended turns that were not reported to the engine yet, with their sessions, oldest first.
    ended: VecDeque<(String, String)>,
}

impl LiveEngine {
    pub(super) fn new(compaction: CompactionBy) -> Self {
        Self {
            client: None,
            leases: Leases::new(false, compaction),
            now: Timestamp::default(),
            histories: HashMap::new(),
            bootstrapped: HashSet::new(),
            ended: VecDeque::new(),
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.client.is_some()
    }

    pub(super) fn is_lost(&self) -> bool {
        self.client.as_ref().is_none_or(EngineClient::is_lost)
    }

    /// Ends the engine.
    pub(super) fn end(&mut self) {
        self.client = None;
        self.bootstrapped.clear();
    }

    /// Starts it, and returns its info.
    pub(super) async fn start(
        &mut self,
        spec: &EngineSpec,
        launcher: &dyn Launcher,
        base: &str,
    ) -> Result<EngineInfo, EngineError> {
        self.end();
        let hello = Hello {
            protocol: PROTOCOL.into(),
            host: HostInfo { name: "ctx".into(), version: env!("CARGO_PKG_VERSION").into() },
            features: launcher.features(),
            encodings: match spec.encoding {
                EngineEncoding::Msgpack => Encoding::supported(),
                EngineEncoding::Json => Vec::new(),
            },
            config: spec.config.expose().clone(),
        };
        let channel = launcher.open()?;
        let client = EngineClient::start(&spec.id, channel, &hello, spec.deadlines).await?;
        let info = &client.info;
        if let Some(expected) = info.contract.base.as_deref().filter(|&expected| expected != base) {
            return Err(EngineError::Unfit {
                why: format!("it requires the base '{}', but its base is '{base}'", tidy(expected)),
                hint: "set plugins.engines.<id>.base to the engine that is to run first",
            });
        }
        self.leases.requested = info.contract.owns_compaction;
        let version = tidy(&info.version);
        let info = EngineInfo {
            id: spec.id.clone().into(),
            name: tidy(&info.name).into(),
            version: version.into(),
            owns_compaction: info.contract.owns_compaction,
        };
        self.client = Some(client);
        Ok(info)
    }

    /// Records that a session has a history. A restarted engine gets it again.
    pub(super) fn add_history(&mut self, request: BootstrapRequest) {
        self.bootstrapped.remove(&request.session_id);
        self.histories.insert(request.session_id, request.session_file);
    }

    /// Whether the engine only adds to the result of another one.
    pub(super) fn wants_base(&self) -> bool {
        self.client.as_ref().is_some_and(|client| client.info.contract.base.is_some())
    }

    /// Records that a turn's messages are stored permanently. The call is repeated until it
    /// succeeds.
    pub(super) fn add_ended_turn(&mut self, session_id: &str, key: &str) {
        if self.ended.len() >= MAX_ENDED {
            self.ended.pop_front();
        }
        self.ended.push_back((session_id.to_owned(), key.to_owned()));
    }

    /// Calls `bootstrap` for a session, if it has a history that was not reported yet.
    pub(super) async fn bootstrap(
        &mut self,
        session_id: &str,
    ) -> Result<Bootstrapped, EngineError> {
        let Some(file) = self.histories.get(session_id) else {
            return Ok(Bootstrapped::default());
        };
        if !self.bootstrapped.insert(session_id.to_owned()) {
            return Ok(Bootstrapped::default());
        }
        let session_file = file.clone();
        let session_id = session_id.to_owned();
        self.client()?.bootstrap(protocol::Bootstrap { session_id, session_file }).await
    }

    pub(super) async fn assemble(
        &mut self,
        session_id: &str,
        view: &ContextView,
        turn: &TurnContext,
        adds_only: bool,
    ) -> Result<CheckedPlan, EngineError> {
        self.bootstrap(session_id).await?;
        self.client()?.assemble(session_id, view, turn, adds_only).await
    }

    pub(super) async fn compact(
        &mut self,
        request: &CompactRequest,
    ) -> Result<CompactionOutcome, EngineError> {
        self.bootstrap(&request.session_id).await?;
        self.client()?.compact(request).await
    }

    pub(super) async fn work(
        &mut self,
        session_id: Option<&str>,
        work: BackgroundCall,
    ) -> Result<bool, EngineError> {
        if let Some(session_id) = session_id {
            self.bootstrap(session_id).await?;
        }
        let client = self.client.as_mut().ok_or_else(not_up)?;
        match work {
            BackgroundCall::Ingest(request) => return client.ingest(&request).await,
            BackgroundCall::CommitTurns => {
                while let Some((session_id, key)) = self.ended.front() {
                    client.commit_turn(session_id, key).await?;
                    self.ended.pop_front();
                }
            }
            BackgroundCall::SessionVerb { verb, session_id } => {
                client.of_session(verb, &session_id).await?;
            }
            BackgroundCall::Spawn { verb, spawn } => client.tell::<Done>(verb, &spawn).await?,
            BackgroundCall::Ended(ended) => {
                client.tell::<Done>(verb::ON_SUBAGENT_ENDED, &ended).await?;
            }
        }
        Ok(true)
    }

    pub(super) async fn dispose(&mut self) -> Result<(), EngineError> {
        let done = match &mut self.client {
            Some(client) => client.dispose().await,
            None => Ok(()),
        };
        self.end();
        done
    }

    fn client(&mut self) -> Result<&mut EngineClient, EngineError> {
        self.client.as_mut().ok_or_else(not_up)
    }
}

fn not_up() -> EngineError {
    EngineError::Unfit { why: "it is not running".into(), hint: "start it again" }
}

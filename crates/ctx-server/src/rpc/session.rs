//! A session in the host's dialect.

use ctx_core::{EntryId, Message, Result, SubagentSpawn, Tokens};
use serde::Serialize;
use serde_json::value::RawValue;

use super::dialect::Dialect;
use super::params;
use crate::hosted::{HostedSession, SyncResult, Unit};

/// A session and the dialect of its messages.
pub(super) struct RpcSession {
    pub(super) session: HostedSession,
    pub(super) format: Dialect,
}

/// A message of a host's list.
struct DialectUnit<'a>(Dialect, &'a RawValue);

impl Unit for DialectUnit<'_> {
    fn raw(&self) -> &str {
        self.1.get()
    }

    fn read(&self) -> Result<Message> {
        self.0.read(self.1)
    }
}

/// The result of `status`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Status {
    session_id: String,
    engine: serde_json::Value,
    profile: &'static str,
    model: Option<String>,
    counter: &'static str,
    format: Dialect,
    #[serde(flatten)]
    sizes: Sizes,
    /// The size of a request now, before the engine edits it.
    tokens: Tokens,
    calibration: f64,
    compactions: usize,
    /// The summary entry in force.
    summary_id: Option<EntryId>,
}

/// The budget of a session, and its number of messages.
#[derive(Serialize)]
pub(super) struct Sizes {
    window: Tokens,
    /// The source of the window.
    source: &'static str,
    reserve: Tokens,
    limit: Tokens,
    system: Tokens,
    tools: Tokens,
    /// The number of messages received, or read from the session file.
    messages: usize,
}

impl Sizes {
    pub(super) fn of(session: &HostedSession) -> Self {
        let ledger = &session.ledger;
        Self {
            window: ledger.window(),
            source: session.resolved.window.source.name(),
            reserve: ledger.reserve(),
            limit: ledger.limit(),
            system: ledger.system(),
            tools: ledger.tools,
            messages: session.history.len(),
        }
    }
}

impl RpcSession {
    fn units<'a>(&self, given: &params::Messages<'a>) -> Vec<DialectUnit<'a>> {
        given.messages.iter().map(|raw| DialectUnit(self.format, raw)).collect()
    }

    /// Appends messages, and passes them to the engine.
    pub(super) async fn append(&mut self, given: params::Messages<'_>) -> Result<Vec<EntryId>> {
        let units = self.units(&given);
        self.session.append(&units, given.ids, given.is_heartbeat).await
    }

    /// Replaces the history by the list, and passes new messages to the engine.
    pub(super) async fn sync(&mut self, given: params::Messages<'_>) -> Result<SyncResult> {
        let units = self.units(&given);
        self.session.sync(&units, given.ids, given.is_heartbeat).await
    }

    pub(super) fn spawn(&self, given: params::Spawn) -> SubagentSpawn {
        SubagentSpawn {
            parent_session_key: given
                .parent_session_key
                .unwrap_or_else(|| given.session_id.clone()),
            child_session_key: given.child_session_key,
            ttl_ms: given.ttl_ms,
        }
    }

    pub(super) fn status(&mut self) -> Result<Status> {
        let session = &mut self.session;
        let view = session.take_view()?;
        let tokens = view.used();
        session.view = Some(view);
        let (ledger, resolved) = (&session.ledger, &session.resolved);
        Ok(Status {
            session_id: session.id.clone(),
            engine: session.engine_state(),
            profile: resolved.profile.name(),
            model: resolved.model.clone(),
            counter: ledger.counter().kind.name(),
            format: self.format,
            sizes: Sizes::of(session),
            tokens,
            calibration: ledger.calibration.factor(),
            compactions: session.compactions,
            summary_id: session.in_force.as_ref().and_then(|c| c.summary_id()).cloned(),
        })
    }
}

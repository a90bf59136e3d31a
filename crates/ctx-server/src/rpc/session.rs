//! A session that a host opened, in the host's words.

use ctx_core::{EntryId, Message, Result, SubagentSpawn, Tokens};
use serde::Serialize;
use serde_json::value::RawValue;

use super::dialect::Dialect;
use super::params;
use crate::hosted::{Session, Synced, Unit};

/// A session and the shape in which its messages are told.
pub(super) struct Served {
    pub(super) session: Session,
    pub(super) format: Dialect,
}

/// A message of a host's list.
struct InDialect<'a>(Dialect, &'a RawValue);

impl Unit for InDialect<'_> {
    fn raw(&self) -> &str {
        self.1.get()
    }

    fn read(&self) -> Result<Message> {
        self.0.read(self.1)
    }
}

/// How full a session is.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Status {
    session_id: String,
    engine: serde_json::Value,
    profile: &'static str,
    model: Option<String>,
    counter: &'static str,
    format: Dialect,
    window: Tokens,
    source: &'static str,
    reserve: Tokens,
    limit: Tokens,
    system: Tokens,
    tools: Tokens,
    /// Messages that were told.
    messages: usize,
    /// What a request would measure now, before the engine sees it.
    tokens: Tokens,
    calibration: f64,
    compactions: usize,
    /// The entry of the summary in force.
    summary_id: Option<EntryId>,
}

impl Served {
    fn units<'a>(&self, given: &params::Messages<'a>) -> Vec<InDialect<'a>> {
        given.messages.iter().map(|raw| InDialect(self.format, raw)).collect()
    }

    /// Adds messages, and tells the engine.
    pub(super) async fn append(&mut self, given: params::Messages<'_>) -> Result<Vec<EntryId>> {
        let units = self.units(&given);
        self.session.append(&units, given.ids, given.is_heartbeat).await
    }

    /// Takes the list for what the history is now, and tells the engine what is new.
    pub(super) async fn sync(&mut self, given: params::Messages<'_>) -> Result<Synced> {
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
            counter: ledger.counter().kind().name(),
            format: self.format,
            window: ledger.window(),
            source: resolved.window.source.name(),
            reserve: ledger.reserve(),
            limit: ledger.limit(),
            system: ledger.system(),
            tools: ledger.tools(),
            messages: session.history.len(),
            tokens,
            calibration: ledger.calibration().factor(),
            compactions: session.compactions,
            summary_id: session.in_force.as_ref().and_then(|c| c.summary_id()).cloned(),
        })
    }
}

//! A session in the host's dialect.

use std::sync::Arc;

use ctx_core::{EntryId, Message, Result, SubagentSpawn, Tokens};
use ctx_dialect::json::value;
use ctx_hosted::{HostedSession, SyncResult, Unit};
use serde::Serialize;
use tracing::Span;
use tracing::field::Empty;

use super::dialect::Dialect;
use super::fit::HostList;
use super::method::Method;
use super::params;

/// A session and the dialect of its messages.
pub(super) struct RpcSession {
    pub(super) session: HostedSession,
    pub(super) format: Dialect,
    /// The messages of the last `fit`.
    pub(super) list: HostList,
    /// Whether a `fit` only continued a conversation that the provider stores.
    pub(super) was_continued: bool,
}

/// A message of a host's list.
pub(super) struct DialectUnit<'a> {
    pub(super) format: Dialect,
    /// A valid JSON value.
    pub(super) raw: &'a str,
    /// Whether the last `fit` had it at this place.
    pub(super) is_known: bool,
}

impl Unit for DialectUnit<'_> {
    fn raw(&self) -> &str {
        self.raw
    }

    fn is_known(&self) -> bool {
        self.is_known
    }

    fn read(&self) -> Result<Arc<Message>> {
        self.format.read(value(self.raw)?).map(Arc::new)
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
    /// Returns the span of a call that makes a request or a compaction.
    pub(super) fn span(&self, method: Method) -> Span {
        match method {
            Method::Fit | Method::Assemble | Method::Compact => tracing::info_span!(
                "rpc",
                otel.name = method.name(),
                gen_ai.conversation.id = %self.session.id,
                gen_ai.request.model = self.session.resolved.model,
                ctx.tokens.sent = Empty,
            ),
            _ => Span::none(),
        }
    }

    fn units<'a>(&self, given: &params::Messages<'a>) -> Vec<DialectUnit<'a>> {
        let format = self.format;
        let raws = given.messages.iter().map(|raw| raw.get());
        raws.map(|raw| DialectUnit { format, raw, is_known: false }).collect()
    }

    /// Appends messages, and passes them to the engine.
    pub(super) async fn append(&mut self, given: params::Messages<'_>) -> Result<Vec<EntryId>> {
        let units = self.units(&given);
        self.list.is_of_history = false;
        self.session.append(&units, given.ids, given.is_heartbeat).await
    }

    /// Replaces the history by the list, and passes new messages to the engine.
    pub(super) async fn sync(&mut self, given: params::Messages<'_>) -> Result<SyncResult> {
        let units = self.units(&given);
        self.list.is_of_history = false;
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

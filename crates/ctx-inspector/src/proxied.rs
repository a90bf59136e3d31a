//! The conversations of the proxy as a source.

mod session;

use std::sync::Arc;

use ctx_core::{Message, Result};
use ctx_server::proxy::Proxy;
use ctx_trace::{SessionTrace, Trace};
use tokio::runtime::Handle;

use self::session::ProxiedSession;
use super::shape::{SessionHead, SourceKind};
use super::source::{Source, SourceState};

/// Access to the proxy's conversations. Called on threads that may block.
pub(crate) trait LiveConversations: Send + Sync {
    /// Returns a message, if the conversation still has it.
    fn message(&self, session: &str, entry: &str) -> Option<Arc<Message>>;

    /// Undoes the compaction with that summary entry.
    ///
    /// # Errors
    ///
    /// An error if the compaction is not in force, and errors of writing.
    fn undo(&self, session: &str, entry: &str) -> Result<()>;
}

impl LiveConversations for Proxy {
    fn message(&self, session: &str, entry: &str) -> Option<Arc<Message>> {
        Handle::current().block_on(Proxy::message(self, session, entry))
    }

    fn undo(&self, session: &str, entry: &str) -> Result<()> {
        Handle::current().block_on(Proxy::undo(self, session, entry))
    }
}

/// The prefix of a conversation's id in the API.
const KIND: &str = "proxy-";

/// The conversations that a proxy recorded.
pub(crate) struct Proxied {
    trace: Arc<Trace>,
    live: Arc<dyn LiveConversations>,
}

impl Proxied {
    /// Creates a source of the conversations of a proxy.
    #[must_use]
    pub(crate) fn of(proxy: Arc<Proxy>) -> Self {
        Self::new(proxy.trace().clone(), proxy)
    }

    /// Creates a source of the conversations of a trace.
    #[must_use]
    pub(crate) fn new(trace: Arc<Trace>, live: Arc<dyn LiveConversations>) -> Self {
        Self { trace, live }
    }

    fn find(&self, id: &str) -> Option<SessionTrace> {
        self.trace.of_session(id.strip_prefix(KIND)?)
    }
}

impl Source for Proxied {
    fn sessions(&self) -> Result<Vec<SessionHead>> {
        Ok(self.trace.sessions().iter().map(head).collect())
    }

    fn open(&self, id: &str) -> Result<Option<SourceState>> {
        let found = self.find(id).map(|session| {
            let (trace, live) = (self.trace.clone(), self.live.clone());
            SourceState::Open(Arc::new(ProxiedSession { session, trace, live }))
        });
        Ok(found)
    }

    fn stamp(&self, id: Option<&str>) -> Option<u64> {
        match id {
            Some(id) => self.find(id).map(|session| stamp(&session)),
            None => {
                let all = self.trace.sessions();
                Some(all.iter().fold(all.len() as u64, |sum, one| sum.wrapping_add(stamp(one))))
            }
        }
    }
}

/// Returns a number that grows with each request and each undo.
fn stamp(session: &SessionTrace) -> u64 {
    let undone = |record: &&Arc<ctx_trace::Record>| {
        record.compaction.as_ref().is_some_and(|compaction| compaction.undone)
    };
    let undone = session.requests.iter().filter(undone).count() as u64;
    let newest = session.requests.last().map_or(0, |record| record.number + 1);
    newest.wrapping_mul(1_000_003).wrapping_add(undone)
}

fn head(session: &SessionTrace) -> SessionHead {
    let newest = session.requests.last();
    let compactions = session.requests.iter().filter_map(|record| record.compaction.as_ref());
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    SessionHead {
        id: format!("{KIND}{}", session.info.id),
        source: SourceKind::Proxy,
        title: some(&session.info.title).unwrap_or_else(|| session.info.id.clone()),
        model: session.info.model.clone(),
        engine: some(&session.info.engine),
        window: newest.map(|record| record.window),
        requests: Some(session.requests.len()),
        compactions: Some(compactions.filter(|compaction| !compaction.undone).count() as u64),
        last_at: newest.map(|record| record.at),
        raw_tokens: newest.map(|record| record.raw_tokens.get()),
        sent_tokens: newest.map(|record| record.sent_tokens.get()),
        ..SessionHead::default()
    }
}

//! The conversations of the proxy as a source.

mod opened;

use std::sync::Arc;

use ctx_core::Result;

use self::opened::Conversation;
use super::shape::{SessionHead, SourceKind, Undone};
use super::source::{Source, State};
use crate::trace::{SessionTrace, Trace};

/// Takes a compaction of a conversation back, or puts it in force again: the conversation and the
/// entry of the summary.
pub type Undo = Arc<dyn Fn(&str, &str) -> Result<Undone> + Send + Sync>;

/// What begins the id of a conversation in the API.
const KIND: &str = "proxy-";

/// The conversations of which there are records.
pub struct Proxied {
    trace: Arc<Trace>,
    undo: Option<Undo>,
}

impl Proxied {
    /// Those of a trace.
    #[must_use]
    pub fn new(trace: Arc<Trace>) -> Self {
        Self { trace, undo: None }
    }

    /// The same, whose compactions can be taken back.
    #[must_use]
    pub fn with_undo(mut self, undo: Undo) -> Self {
        self.undo = Some(undo);
        self
    }

    fn find(&self, id: &str) -> Option<SessionTrace> {
        self.trace.of_session(id.strip_prefix(KIND)?)
    }
}

impl Source for Proxied {
    fn sessions(&self) -> Result<Vec<SessionHead>> {
        Ok(self.trace.sessions().iter().map(head).collect())
    }

    fn open(&self, id: &str) -> Result<Option<State>> {
        let found = self.find(id).map(|session| {
            let (trace, undo) = (self.trace.clone(), self.undo.clone());
            State::Open(Arc::new(Conversation { session, trace, undo }))
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

/// A number that grows with each request and each undo.
fn stamp(session: &SessionTrace) -> u64 {
    let undone = |record: &&Arc<crate::trace::Record>| {
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

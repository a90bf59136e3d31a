//! What was sent to an engine, by session.

use std::collections::{HashMap, HashSet};

use ctx_core::{Counter, EntryId};
use ctx_engine_sdk::protocol::Contract;

use super::{SyncOptions, ViewSync};

/// Maximum number of sessions. Beyond it, the least recently used one is removed, and sent again in
/// full if it is used.
const MAX_SESSIONS: usize = 256;

/// One session.
#[derive(Debug, Default)]
pub(super) struct SessionState {
    /// The part of its view that the engine knows; `None` if all of it must be sent.
    pub(super) sync: Option<ViewSync>,
    /// Ingested messages that were not sent as a row yet.
    pub(super) ingested: HashSet<EntryId>,
    pub(super) counter: Counter,
    last_used: u64,
}

impl SessionState {
    pub(super) fn sync_options<'a>(&'a self, contract: &'a Contract) -> SyncOptions<'a> {
        SyncOptions { contract, ingested: &self.ingested }
    }
}

/// The sessions of one engine.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    by_id: HashMap<String, SessionState>,
    uses: u64,
}

impl Sessions {
    pub(super) fn of(&mut self, id: &str) -> &mut SessionState {
        self.uses += 1;
        if self.by_id.len() >= MAX_SESSIONS && !self.by_id.contains_key(id) {
            let oldest = self.by_id.iter().min_by_key(|(_, session)| session.last_used);
            if let Some(oldest) = oldest.map(|(id, _)| id.clone()) {
                self.by_id.remove(&oldest);
            }
        }
        let session = self.by_id.entry(id.to_owned()).or_default();
        session.last_used = self.uses;
        session
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_session_is_forgotten() {
        let mut sessions = Sessions::default();
        for n in 0..MAX_SESSIONS {
            sessions.of(&n.to_string()).ingested.insert("e".into());
        }
        sessions.of("0");
        sessions.of("one more");
        assert_eq!(sessions.by_id.len(), MAX_SESSIONS);
        assert!(!sessions.of("0").ingested.is_empty());
        assert!(sessions.of("1").ingested.is_empty());
    }
}

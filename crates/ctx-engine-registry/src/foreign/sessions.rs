//! What is remembered of the sessions that one engine was told of.

use std::collections::{HashMap, HashSet};

use ctx_core::{Counter, EntryId};
use ctx_engine_sdk::protocol::Contract;

use super::{Telling, Told};

/// Of more sessions than this, those that were not asked about for longest are told anew.
const MOST: usize = 256;

/// One session.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// What the engine knows of its view; nothing where it must be told everything.
    pub(super) told: Option<Told>,
    /// Messages that it was given before they came as a row.
    pub(super) ingested: HashSet<EntryId>,
    pub(super) counter: Counter,
    last_used: u64,
}

impl Session {
    pub(super) fn telling<'a>(&'a self, contract: &'a Contract) -> Telling<'a> {
        Telling { contract, ingested: &self.ingested }
    }
}

/// The sessions of one engine.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    by_id: HashMap<String, Session>,
    uses: u64,
}

impl Sessions {
    pub(super) fn of(&mut self, id: &str) -> &mut Session {
        self.uses += 1;
        if self.by_id.len() >= MOST && !self.by_id.contains_key(id) {
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
    fn the_session_that_was_not_asked_about_for_longest_is_forgotten() {
        let mut sessions = Sessions::default();
        for n in 0..MOST {
            sessions.of(&n.to_string()).ingested.insert("e".into());
        }
        sessions.of("0");
        sessions.of("one more");
        assert_eq!(sessions.by_id.len(), MOST);
        assert!(!sessions.of("0").ingested.is_empty());
        assert!(sessions.of("1").ingested.is_empty());
    }
}

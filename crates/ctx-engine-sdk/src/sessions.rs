//! The sessions of a process that may run for months.

use std::collections::HashMap;

use crate::Session;

/// Maximum number of sessions. Beyond it, the least recently used one is removed. A host that
/// relies on the engine's memory must assume fewer: ctx assumes half of it.
const MAX_SESSIONS: usize = 512;

#[derive(Debug, Default)]
pub(crate) struct SessionCache {
    by_id: HashMap<String, (u64, Session)>,
    calls: u64,
}

impl SessionCache {
    /// Returns the session with this id, a new empty one if it is unknown.
    pub(crate) fn of(&mut self, id: &str) -> &mut Session {
        if self.by_id.len() >= MAX_SESSIONS && !self.by_id.contains_key(id) {
            let oldest = self.by_id.iter().min_by_key(|(_, (call, _))| *call);
            if let Some(oldest) = oldest.map(|(id, _)| id.clone()) {
                self.by_id.remove(&oldest);
            }
        }
        self.calls += 1;
        let (call, session) =
            self.by_id.entry(id.to_owned()).or_insert_with(|| (0, Session::new(id)));
        *call = self.calls;
        session
    }

    pub(crate) fn clear(&mut self) {
        self.by_id.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Row;

    #[test]
    fn the_least_recently_used_session_is_removed() {
        let mut sessions = SessionCache::default();
        for n in 0..MAX_SESSIONS {
            sessions.of(&n.to_string()).ingest(&Row::default());
        }
        sessions.of("0");
        sessions.of("one more");
        assert_eq!(sessions.by_id.len(), MAX_SESSIONS);
        let mut is_new = |id: &str| sessions.of(id).ingest(&Row::default());
        assert!(!is_new("0") && is_new("1"));
    }
}

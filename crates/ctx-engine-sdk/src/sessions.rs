//! The sessions of a process that may live for months.

use std::collections::HashMap;

use crate::Session;

/// So many sessions are mirrored; one more, and that which was not asked about for longest goes. A
/// host that counts on an engine to remember must count on less: ctx on half of it.
const MOST: usize = 512;

#[derive(Debug, Default)]
pub(crate) struct Sessions {
    by_id: HashMap<String, (u64, Session)>,
    calls: u64,
}

impl Sessions {
    /// The session of that id, empty where it is new.
    pub(crate) fn of(&mut self, id: &str) -> &mut Session {
        if self.by_id.len() >= MOST && !self.by_id.contains_key(id) {
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
    fn of_too_many_sessions_the_one_that_was_not_asked_about_for_longest_goes() {
        let mut sessions = Sessions::default();
        for n in 0..MOST {
            sessions.of(&n.to_string()).ingest(&Row::default());
        }
        sessions.of("0");
        sessions.of("one more");
        assert_eq!(sessions.by_id.len(), MOST);
        let mut is_new = |id: &str| sessions.of(id).ingest(&Row::default());
        assert!(!is_new("0") && is_new("1"));
    }
}

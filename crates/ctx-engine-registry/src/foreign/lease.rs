//! The lease on compaction: who compacts which session.

use std::collections::HashMap;

use ctx_core::LeaseState;

use crate::CompactionBy;

/// A session's compaction is taken back after so many answers in it that were not carried out.
const MOST_REJECTED: u32 = 3;

/// What became of the lease in one session.
#[derive(Debug)]
enum Lease {
    Granted { rejected: u32 },
    Withdrawn,
}

/// The leases of one engine. Granted per session, when it is first used there; taken back for good.
#[derive(Debug, Default)]
pub(super) struct Leases {
    asked: bool,
    refused: bool,
    /// Sessions in which something went wrong.
    marked: HashMap<String, Lease>,
    any_withdrawn: bool,
}

impl Leases {
    pub(super) fn new(asked: bool, by: CompactionBy) -> Self {
        Self { asked, refused: by == CompactionBy::Host, ..Self::default() }
    }

    /// Whether the engine asks for it, as it says when it comes up.
    pub(super) fn set_asked(&mut self, asked: bool) {
        self.asked = asked;
    }

    /// Whether the engine compacts this session.
    pub(super) fn is_granted(&self, session_id: &str) -> bool {
        let withdrawn = matches!(self.marked.get(session_id), Some(Lease::Withdrawn));
        self.asked && !self.refused && !withdrawn
    }

    /// Notes that a call in a session went wrong, and says whether that cost the lease. One that
    /// was `grave`, a missed deadline or a crash, does so at once.
    pub(super) fn failed(&mut self, session_id: &str, grave: bool) -> bool {
        if !self.is_granted(session_id) {
            return false;
        }
        let lease = self.marked.entry(session_id.to_owned());
        let lease = lease.or_insert(Lease::Granted { rejected: 0 });
        if let Lease::Granted { rejected } = lease {
            *rejected += 1;
            if !grave && *rejected < MOST_REJECTED {
                return false;
            }
        }
        *lease = Lease::Withdrawn;
        self.any_withdrawn = true;
        true
    }

    pub(super) fn state(&self) -> LeaseState {
        match self {
            Self { asked: false, .. } => LeaseState::NotAsked,
            Self { refused: true, .. } => LeaseState::Refused,
            Self { any_withdrawn: true, .. } => LeaseState::Withdrawn,
            _ => LeaseState::Granted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_asked_for_allowed_and_lost_session_by_session() {
        let mut leases = Leases::new(false, CompactionBy::Engine);
        assert_eq!((leases.state(), leases.is_granted("s")), (LeaseState::NotAsked, false));
        leases.set_asked(true);
        assert_eq!((leases.state(), leases.is_granted("s")), (LeaseState::Granted, true));
        assert!(leases.failed("s", true));
        assert!(!leases.failed("s", true), "it was lost before");
        assert_eq!((leases.state(), leases.is_granted("s")), (LeaseState::Withdrawn, false));
        assert!(leases.is_granted("t"));
        let lost: Vec<bool> = (0..3).map(|_| leases.failed("t", false)).collect();
        assert_eq!(lost, [false, false, true]);
        let refused = Leases::new(true, CompactionBy::Host);
        assert_eq!((refused.state(), refused.is_granted("s")), (LeaseState::Refused, false));
    }
}

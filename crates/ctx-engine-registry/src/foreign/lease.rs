//! The lease on compaction: which side compacts which session.

use std::collections::HashMap;

use ctx_core::LeaseState;

use crate::CompactionBy;

/// Number of failed calls and rejected answers in a session after which its lease is revoked.
const MAX_REJECTED: u32 = 3;

/// The state of the lease in one session.
#[derive(Debug)]
enum Lease {
    Granted { rejected: u32 },
    Withdrawn,
}

/// The leases of one engine. Each session starts with a lease. A lost lease is not granted again.
#[derive(Debug, Default)]
pub(super) struct Leases {
    pub(super) requested: bool,
    refused: bool,
    /// Sessions with failures.
    with_failures: HashMap<String, Lease>,
    any_withdrawn: bool,
}

impl Leases {
    pub(super) fn new(requested: bool, by: CompactionBy) -> Self {
        Self { requested, refused: by == CompactionBy::Host, ..Self::default() }
    }

    /// Whether the engine compacts this session.
    pub(super) fn is_granted(&self, session_id: &str) -> bool {
        let withdrawn = matches!(self.with_failures.get(session_id), Some(Lease::Withdrawn));
        self.requested && !self.refused && !withdrawn
    }

    /// Records a failed call in a session. Returns whether that revoked the lease. A `grave`
    /// failure (for example a missed deadline or a crash) revokes it at once.
    pub(super) fn failed(&mut self, session_id: &str, grave: bool) -> bool {
        if !self.is_granted(session_id) {
            return false;
        }
        let lease = self.with_failures.entry(session_id.to_owned());
        let lease = lease.or_insert(Lease::Granted { rejected: 0 });
        if let Lease::Granted { rejected } = lease {
            *rejected += 1;
            if !grave && *rejected < MAX_REJECTED {
                return false;
            }
        }
        *lease = Lease::Withdrawn;
        self.any_withdrawn = true;
        true
    }

    pub(super) fn state(&self) -> LeaseState {
        match self {
            Self { requested: false, .. } => LeaseState::NotAsked,
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
    fn each_session_has_its_own_lease() {
        let mut leases = Leases::new(false, CompactionBy::Engine);
        assert_eq!((leases.state(), leases.is_granted("s")), (LeaseState::NotAsked, false));
        leases.requested = true;
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

//! Tracks the sessions whose files are in use: open, being opened or being closed.
//!
//! Disk work continues when its caller is dropped, and holds the session's lock until it is done.
//! The next user of the session waits for it, instead of failing on a lock of its own process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use ctx_session::key::SessionKey;
use tokio::sync::Notify;

use crate::sync::locked;

/// The sessions of a runtime whose files are in use.
#[derive(Clone, Default)]
pub(crate) struct SessionLeases {
    held: Arc<Mutex<HashMap<SessionKey, LeaseCount>>>,
}

#[derive(Default)]
struct LeaseCount {
    count: usize,
    free: Arc<Notify>,
}

impl SessionLeases {
    /// Waits until the session is not in use, and marks it as in use before its file is touched.
    pub(crate) async fn acquire(&self, key: &SessionKey) -> SessionLease {
        self.free(key).await;
        self.take(key)
    }

    /// Marks a session as in use.
    fn take(&self, key: &SessionKey) -> SessionLease {
        locked(&self.held).entry(key.clone()).or_default().count += 1;
        SessionLease { _inner: Arc::new(LeaseGuard { leases: self.clone(), key: key.clone() }) }
    }

    /// Waits until the session is not in use.
    async fn free(&self, key: &SessionKey) {
        let free = |leases: &Self| locked(&leases.held).get(key).map(|held| held.free.clone());
        while let Some(notify) = free(self) {
            let notified = notify.notified();
            // Check again: a release before `notified()` would be missed.
            if free(self).is_some() {
                notified.await;
            }
        }
    }

    /// Number of sessions in use.
    pub(crate) fn len(&self) -> usize {
        locked(&self.held).len()
    }
}

/// Keeps a session marked as in use until its last clone is dropped.
#[derive(Clone)]
pub(crate) struct SessionLease {
    _inner: Arc<LeaseGuard>,
}

struct LeaseGuard {
    leases: SessionLeases,
    key: SessionKey,
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        let mut held = locked(&self.leases.held);
        let Some(of_key) = held.get_mut(&self.key) else { return };
        of_key.count -= 1;
        if of_key.count == 0 {
            let free = of_key.free.clone();
            held.remove(&self.key);
            free.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Poll;

    use ctx_session::key::FileId;

    use super::*;

    #[tokio::test]
    async fn a_session_is_free_when_the_last_lease_is_dropped() {
        let (leases, key) = (SessionLeases::default(), SessionKey::main(FileId::main()));
        leases.free(&key).await;
        let (one, other) = (leases.take(&key), leases.take(&key));
        let again = one.clone();
        let mut free = pin!(leases.free(&key));
        for lease in [one, other] {
            let waits = poll_fn(|context| Poll::Ready(free.as_mut().poll(context).is_pending()));
            assert!(waits.await);
            drop(lease);
        }
        assert_eq!(leases.len(), 1);
        drop(again);
        free.await;
        assert_eq!(leases.len(), 0);
    }
}

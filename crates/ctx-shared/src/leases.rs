//! The leases that this host holds.

use std::collections::HashMap;
use std::future::poll_fn;
use std::hash::{BuildHasher, RandomState};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use ctx_core::{Error, ErrorKind, Result, Timer};
use ctx_session::key::SessionKey;
use ctx_store::{
    Acquired, AnyStore, Change, ChangeFuture, HostOptions, Lease, Renewal, SessionName,
};

use crate::session_name;
use crate::sync::locked;

/// The wait before the second request for a session that another host holds; it doubles up to
/// [`LONGEST_WAIT`]. A notification of the store ends it.
const FIRST_WAIT: Duration = Duration::from_millis(50);

/// The longest wait between two requests.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Leases are renewed when this part of their time has passed.
const RENEWED_AFTER: u32 = 3;

/// The leases of a host.
pub(crate) struct SharedLeases {
    store: AnyStore,
    host: String,
    ttl: Duration,
    wait: Duration,
    timer: Arc<dyn Timer>,
    held: Mutex<HashMap<SessionKey, LeaseRecord>>,
    /// Ends when another host asks for a session.
    wanted: Mutex<Option<ChangeFuture>>,
}

#[derive(Clone)]
struct LeaseRecord {
    lease: Lease,
    is_wanted: bool,
    is_lost: bool,
    /// Until then the lease is in force for certain, by the clock of this host.
    until: Duration,
}

ctx_core::partial_debug!(SharedLeases, it, host = it.host);

/// A lease of this host. If it is dropped without a release, no renewal is made for it: it expires, or
/// the store gives it back when another host asks for it.
pub(crate) struct HeldLease {
    leases: Arc<SharedLeases>,
    key: SessionKey,
    lease: Lease,
}

impl SharedLeases {
    pub(crate) fn new(store: AnyStore, options: &HostOptions, timer: Arc<dyn Timer>) -> Self {
        let (host, ttl, wait) = (options.holder(), options.lease, options.wait);
        let (held, wanted) = Default::default();
        Self { store, host, ttl, wait, timer, held, wanted }
    }

    /// Waits for the lease of a session. Its holder is asked to hand it over.
    pub(crate) async fn acquire(self: &Arc<Self>, key: &SessionKey) -> Result<HeldLease> {
        let (name, until) = (session_name(key), self.timer.elapsed() + self.wait);
        let mut wait = FIRST_WAIT;
        loop {
            // What changes after the answer ends the wait.
            let released = self.store.changed(Change::Released(&name));
            // A grant is valid for two thirds of the time at least.
            let in_force = self.timer.elapsed() + self.ttl * 2 / 3;
            match self.store.acquire(&name, &self.host, self.ttl).await? {
                Acquired::Granted(lease) => {
                    let (is_wanted, is_lost) = (false, false);
                    let state =
                        LeaseRecord { lease: lease.clone(), is_wanted, is_lost, until: in_force };
                    locked(&self.held).insert(key.clone(), state);
                    return Ok(HeldLease { leases: self.clone(), key: key.clone(), lease });
                }
                Acquired::Held { by, .. } if self.timer.elapsed() >= until => {
                    return Err(Error::new(ErrorKind::Locked, "another host works on the session")
                        .with("session", key)
                        .with("held by", by)
                        .with("waited seconds", self.wait.as_secs())
                        .hint("send the message again when that host is done"));
                }
                Acquired::Held { remaining, .. } => {
                    let left = until.saturating_sub(self.timer.elapsed());
                    let next = jittered(wait).min(remaining).min(left);
                    first_of(self.timer.sleep(next), released).await;
                    wait = (wait * 2).min(LONGEST_WAIT);
                }
            }
        }
    }

    /// Waits until the leases have to be renewed, or another host asks for one, and renews them.
    /// Returns the sessions that other hosts wait for or have taken over.
    pub(crate) async fn renew(&self) -> Vec<SessionKey> {
        let wanted = locked(&self.wanted).take();
        let wanted = wanted.unwrap_or_else(|| self.store.changed(Change::Wanted(&self.host)));
        first_of(self.timer.sleep(self.ttl / RENEWED_AFTER), wanted).await;
        // What is asked for from now on is found by the next renewal.
        *locked(&self.wanted) = Some(self.store.changed(Change::Wanted(&self.host)));
        let (keys, leases): (Vec<_>, Vec<_>) =
            locked(&self.held).iter().map(|(key, held)| (key.clone(), held.lease.clone())).unzip();
        if leases.is_empty() {
            return Vec::new();
        }
        let in_force = self.timer.elapsed() + self.ttl;
        let renewed = match self.store.renew(&leases).await {
            Ok(renewed) => renewed,
            Err(error) => {
                tracing::warn!("leases are not renewed: {error}");
                return Vec::new();
            }
        };
        let mut leaving = Vec::new();
        let mut held = locked(&self.held);
        for ((key, lease), answer) in keys.into_iter().zip(leases).zip(renewed) {
            // It may have been released and acquired again meanwhile.
            let Some(state) = held.get_mut(&key).filter(|state| state.lease == lease) else {
                continue;
            };
            match answer {
                Renewal::Kept { is_wanted } => {
                    (state.is_wanted, state.until) = (is_wanted, in_force);
                }
                Renewal::Lost => state.is_lost = true,
            }
            if state.is_wanted || state.is_lost {
                leaving.push(key);
            }
        }
        leaving
    }

    /// Releases a lease. If that fails, it is as if it was dropped.
    pub(crate) async fn release(&self, held: HeldLease) {
        let lease = held.lease.clone();
        drop(held);
        if let Err(error) = self.store.release(&lease).await {
            tracing::warn!(key = lease.session.key, "a lease is not released: {error}");
        }
    }

    fn state(&self, held: &HeldLease) -> Option<LeaseRecord> {
        let all = locked(&self.held);
        all.get(&held.key).filter(|state| state.lease == held.lease).cloned()
    }
}

impl HeldLease {
    pub(crate) fn leases(&self) -> Arc<SharedLeases> {
        self.leases.clone()
    }

    pub(crate) fn session(&self) -> &SessionName {
        &self.lease.session
    }

    pub(crate) fn lease(&self) -> Lease {
        self.lease.clone()
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.leases.state(self).is_some_and(|state| state.is_wanted)
    }

    /// Records that the store refused a write.
    pub(crate) fn set_lost(&self) {
        let mut held = locked(&self.leases.held);
        if let Some(state) = held.get_mut(&self.key).filter(|state| state.lease == self.lease) {
            state.is_lost = true;
        }
    }

    /// Whether no other host can have been granted the session, by the clock of this host.
    pub(crate) fn is_certain(&self) -> bool {
        let now = self.leases.timer.elapsed();
        self.leases.state(self).is_some_and(|state| !state.is_lost && now < state.until)
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.leases.state(self).is_none_or(|state| state.is_lost)
    }
}

impl Drop for HeldLease {
    fn drop(&mut self) {
        let mut held = locked(&self.leases.held);
        if held.get(&self.key).is_some_and(|state| state.lease == self.lease) {
            held.remove(&self.key);
        }
    }
}

/// Returns a random time from half of `wait` on up to it, so that hosts that began to wait together
/// do not ask together.
fn jittered(wait: Duration) -> Duration {
    let random = RandomState::new().hash_one(wait);
    wait / 2 + (wait / 2) * (random % 1_000) as u32 / 1_000
}

/// Waits for the first of two futures to end.
async fn first_of(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|context| match one.as_mut().poll(context) {
        Poll::Pending => other.as_mut().poll(context),
        done => done,
    })
    .await;
}

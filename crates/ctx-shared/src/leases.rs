//! The leases that this host holds.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ctx_core::{Error, ErrorKind, Result, Timer};
use ctx_session::key::SessionKey;
use ctx_store::{Acquired, AnyStore, HostOptions, Lease, Renewal, SessionName};

use crate::session_name;
use crate::sync::locked;

/// The longest wait between two requests for a session that another host holds.
const POLL: Duration = Duration::from_millis(200);

/// Leases are renewed when this part of their time has passed.
const RENEWED_AFTER: u32 = 3;

/// The leases of a host.
pub struct SharedLeases {
    store: AnyStore,
    host: String,
    ttl: Duration,
    wait: Duration,
    timer: Arc<dyn Timer>,
    held: Mutex<HashMap<SessionKey, LeaseRecord>>,
}

#[derive(Clone)]
struct LeaseRecord {
    lease: Lease,
    is_wanted: bool,
    is_lost: bool,
}

ctx_core::partial_debug!(SharedLeases, it, host = it.host);

/// A lease of this host. It expires by itself if it is not released: no renewal is made for a lease
/// that was dropped.
pub(crate) struct HeldLease {
    leases: Arc<SharedLeases>,
    key: SessionKey,
    lease: Lease,
}

impl SharedLeases {
    pub(crate) fn new(store: AnyStore, options: &HostOptions, timer: Arc<dyn Timer>) -> Self {
        let (host, ttl, wait) = (options.name.clone(), options.lease, options.wait);
        Self { store, host, ttl, wait, timer, held: Mutex::default() }
    }

    /// Waits for the lease of a session. Its holder is asked to hand it over.
    pub(crate) async fn acquire(self: &Arc<Self>, key: &SessionKey) -> Result<HeldLease> {
        let (name, until) = (session_name(key), self.timer.elapsed() + self.wait);
        loop {
            match self.store.acquire(&name, &self.host, self.ttl).await? {
                Acquired::Granted(lease) => {
                    let state =
                        LeaseRecord { lease: lease.clone(), is_wanted: false, is_lost: false };
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
                    self.timer.sleep(remaining.min(POLL)).await;
                }
            }
        }
    }

    /// Waits until the leases have to be renewed, and renews them. Returns the sessions that other
    /// hosts wait for or have taken over.
    pub async fn renew(&self) -> Vec<SessionKey> {
        self.timer.sleep(self.ttl / RENEWED_AFTER).await;
        let (keys, leases): (Vec<_>, Vec<_>) =
            locked(&self.held).iter().map(|(key, held)| (key.clone(), held.lease.clone())).unzip();
        if leases.is_empty() {
            return Vec::new();
        }
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
                Renewal::Kept { is_wanted } => state.is_wanted = is_wanted,
                Renewal::Lost => state.is_lost = true,
            }
            if state.is_wanted || state.is_lost {
                leaving.push(key);
            }
        }
        leaving
    }

    /// Releases a lease. If that fails, it expires.
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

//! Who may write a session.

use std::time::Duration;

use async_trait::async_trait;
use ctx_core::Result;

use crate::SessionName;

/// The right to write a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The session.
    pub session: SessionName,
    /// The host that holds it: a name unique to the process, as of
    /// [`HostOptions::holder`](crate::HostOptions::holder).
    pub holder: String,
    /// The number of the grant. It grows with each grant of this session, and never repeats.
    pub epoch: u64,
    /// For how long it is valid after a renewal, and for two thirds of it at least after a grant, by
    /// the clock of the store. Then another host may be granted the session; until one is, the lease
    /// stays in force. A store may keep all leases of a holder as long as the last of them.
    pub ttl: Duration,
}

/// The answer to a request for a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acquired {
    /// The caller holds the lease.
    Granted(Lease),
    /// Another host holds it. It was asked to hand the session over.
    Held {
        /// The host that holds it.
        by: String,
        /// For how long its lease is still valid.
        remaining: Duration,
    },
}

/// The answer to a renewal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// The lease is valid for another [`Lease::ttl`].
    Kept {
        /// Whether another host waits for the session.
        is_wanted: bool,
    },
    /// Another host was granted the session meanwhile.
    Lost,
}

/// Grants leases.
#[async_trait]
pub trait Leases: Send + Sync {
    /// Grants the lease of a session to `holder` for `ttl`, with the next epoch, unless another
    /// host holds it. A host that holds the lease gets it again, with the next epoch.
    async fn acquire(&self, session: &SessionName, holder: &str, ttl: Duration)
    -> Result<Acquired>;

    /// Renews leases of one holder; one answer for each, in order. A lease that expired is renewed
    /// if no other host was granted the session since. A holder renews all its leases at once: what
    /// it leaves out may expire, or be given back when another host asks for it.
    async fn renew(&self, leases: &[Lease]) -> Result<Vec<Renewal>>;

    /// Gives a lease back. Does nothing if it was lost.
    async fn release(&self, lease: &Lease) -> Result<()>;
}

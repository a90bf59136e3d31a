//! The contract of a store that several hosts share.
//!
//! A host is a process that runs sessions. Hosts that share a store see the same sessions, and only
//! one of them at a time writes to each:
//!
//! - [`Leases`] say who may write a session, and until when. Each grant has a higher epoch, and
//!   every write carries it: a host that slept until another one was granted the session is refused
//!   by the store.
//! - [`SessionLogs`] hold the lines of transcripts, in order. An append is all or none.
//! - [`Directory`] maps a session's key to its entry of `sessions.json`.
//! - [`RecordLogs`] hold what agents remember, with a number for each change.
//! - [`Conversations`] and [`Blobs`] hold what the replicas of a proxy share.
//! - [`Changes`] tell hosts that wait that they may ask again. A store need not have them.
//! - [`Health`] says how the store is. A store need not know.
//!
//! All methods are safe to repeat: if the outcome of a call is unknown, because the connection
//! broke, the same call gives the answer that was lost.
//!
//! [`conformance`] checks an implementation against this contract.

#![forbid(unsafe_code)]

mod changes;
pub mod conformance;
mod directory;
mod error;
mod health;
mod host;
mod lease;
mod log;
mod proxied;
mod records;

use std::sync::Arc;

pub use changes::{Change, ChangeFuture, Changes};
pub use directory::{Directory, DirectoryEntry, EntryPages};
pub use error::{changed_conversation, changed_entry, lost_lease, moved_head};
pub use health::{Health, StoreHealth};
pub use host::HostOptions;
pub use lease::{Acquired, Lease, Leases, Renewal};
pub use log::{Line, LogHead, LogName, SessionLogs};
pub use proxied::{Blob, Blobs, Conversations, EXPIRING};
pub use records::{Record, RecordChanges, RecordKind, RecordLogs};

/// The key of a session, and its agent.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionName {
    /// The agent's id, for example `main`.
    pub agent: String,
    /// The whole key, for example `agent:main:main`.
    pub key: String,
}

/// A store that several hosts share.
pub trait SharedStore:
    Leases + SessionLogs + Directory + RecordLogs + Conversations + Blobs + Changes + Health
{
}

impl<T> SharedStore for T where
    T: Leases + SessionLogs + Directory + RecordLogs + Conversations + Blobs + Changes + Health
{
}

/// A store, as hosts pass it on.
pub type AnyStore = Arc<dyn SharedStore>;

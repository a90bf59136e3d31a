//! A host's part in a store.

use std::time::Duration;

/// How a host takes part in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostOptions {
    /// The name of the host in leases and errors, unique to the process. Default: the process id and
    /// a random word.
    pub name: String,
    /// How long a lease is valid without a renewal; another host takes over the sessions of a dead
    /// one after this time. Default: 5 seconds.
    pub lease: Duration,
    /// How long a turn waits for a session that another host holds. Default: 30 seconds.
    pub wait: Duration,
}

impl Default for HostOptions {
    fn default() -> Self {
        let word = uuid::Uuid::new_v4().simple().to_string();
        Self {
            name: format!("{}-{}", std::process::id(), &word[..8]),
            lease: Duration::from_secs(5),
            wait: Duration::from_secs(30),
        }
    }
}

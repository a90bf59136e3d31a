//! A host's part in a store.

use std::time::Duration;

/// How a host takes part in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostOptions {
    /// The name of the host in leases and errors. Default: the name of the machine.
    pub name: String,
    /// How long a lease is valid without a renewal; another host takes over the sessions of a dead
    /// one after this time. Default: 5 seconds.
    pub lease: Duration,
    /// How long a turn waits for a session that another host holds. Default: 30 seconds.
    pub wait: Duration,
    /// Whether turns go on while the store is away, in files of the host, until the lease ends.
    /// Default: no.
    pub journal: bool,
}

impl Default for HostOptions {
    fn default() -> Self {
        let (lease, wait) = (Duration::from_secs(5), Duration::from_secs(30));
        Self { name: machine(), lease, wait, journal: false }
    }
}

impl HostOptions {
    /// Returns a new name of a holder of leases: the host's name, the process id and a random word.
    /// A process that starts again is another holder, because it does not know the leases of the
    /// one before; two programs of one host are two holders.
    #[must_use]
    pub fn holder(&self) -> String {
        let word = uuid::Uuid::new_v4().simple().to_string();
        format!("{}/{}-{}", self.name, std::process::id(), &word[..8])
    }
}

/// Returns the name of the machine; `host` if it is not known.
fn machine() -> String {
    let named = ["HOSTNAME", "COMPUTERNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    let named = named.or_else(|| std::fs::read_to_string("/etc/hostname").ok());
    let named = named.unwrap_or_default().trim().to_owned();
    if named.is_empty() { "host".to_owned() } else { named }
}

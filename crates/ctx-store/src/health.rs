//! How a store is.

use serde::Serialize;

/// How a store is, as this process has seen it. All clones of a store have it in common.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StoreHealth {
    /// Whether calls are made. Otherwise they fail at once, because the database cannot be reached.
    pub is_reachable: bool,
    /// For how many seconds the database cannot be reached.
    pub unreachable_seconds: Option<f64>,
    /// The last error of a call that was given up because of the database.
    pub last_error: Option<String>,
    /// The number of calls that failed since the store was opened.
    pub failures: u64,
    /// The number of repetitions of calls since the store was opened.
    pub retries: u64,
    /// The maximum number of connections.
    pub most_connections: usize,
    /// The number of open connections.
    pub connections: usize,
    /// The number of connections in use.
    pub in_use: usize,
    /// The number of calls that wait for a connection.
    pub waiting: usize,
    /// Whether notifications of other hosts are listened to. Without them, hosts ask again.
    pub is_listening: bool,
}

/// Says how a store is.
pub trait Health: Send + Sync {
    /// Returns how the store is, without asking it; `None` if that is not known.
    fn health(&self) -> Option<StoreHealth> {
        None
    }
}

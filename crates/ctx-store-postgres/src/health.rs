//! How a store is.

use ctx_store::{Health, StoreHealth};

use crate::PostgresStore;

impl Health for PostgresStore {
    fn health(&self) -> Option<StoreHealth> {
        let (seen, pool) = (self.shared.breaker.seen(), self.pool.status());
        Some(StoreHealth {
            is_reachable: seen.unreachable.is_none(),
            unreachable_seconds: seen.unreachable.map(|time| time.as_secs_f64()),
            last_error: seen.last_error,
            failures: seen.failures,
            retries: seen.retries,
            most_connections: pool.max_size,
            connections: pool.size,
            in_use: pool.size.saturating_sub(pool.available),
            waiting: pool.waiting,
            is_listening: self.shared.notifications.is_listening(),
        })
    }
}

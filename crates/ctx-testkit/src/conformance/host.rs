//! The services of the suite's host: a store in memory, and a clock that does not wait.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use ctx_core::{Result, Store, Timer};

use crate::locked;

/// A store in memory. Its clones share their contents, so that a second engine finds what the first
/// one wrote.
#[derive(Clone, Debug, Default)]
pub(super) struct HeldStore(Arc<Mutex<BTreeMap<String, Vec<u8>>>>);

impl HeldStore {
    /// Returns all values. A store cannot remove a key: an empty value, or the `null` of an engine
    /// that uses JSON, counts as removed.
    pub(super) fn snapshot(&self) -> BTreeMap<String, Vec<u8>> {
        let values = locked(&self.0);
        let full = values.iter().filter(|(_, value)| !matches!(&value[..], b"" | b"null"));
        full.map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

#[async_trait]
impl Store for HeldStore {
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>> {
        Ok(locked(&self.0).get(key).cloned())
    }

    async fn put(&self, key: &str, value: &[u8]) -> Result<()> {
        locked(&self.0).insert(key.to_owned(), value.to_vec());
        Ok(())
    }

    async fn list(&self, prefix: &str) -> Result<Vec<String>> {
        let values = locked(&self.0);
        Ok(values.keys().filter(|key| key.starts_with(prefix)).cloned().collect())
    }
}

/// A clock for models that answer at once or never: a sleeper is woken at once, and the time
/// advances by its sleep. It works under any executor and on any thread.
#[derive(Clone, Debug, Default)]
pub(super) struct HastyTimer(Arc<AtomicU64>);

/// How often a sleeper yields, so that a finished answer wins over a deadline.
const YIELDS: u32 = 16;

#[async_trait]
impl Timer for HastyTimer {
    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }

    async fn sleep(&self, duration: Duration) {
        for _ in 0..YIELDS {
            tokio::task::yield_now().await;
        }
        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        self.0.fetch_add(millis, Ordering::Relaxed);
    }
}

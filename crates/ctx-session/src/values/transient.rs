//! A store in memory: its values are visible only in this run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use ctx_core::{Error, ErrorKind, Result, Store};

/// The maximum size of all values of one run, in bytes.
const MOST: usize = 256 << 20;

/// Values in memory, optionally layered over another store: a dry run reads stored values and
/// stores none.
#[derive(Default)]
pub struct TransientStore {
    below: Option<Arc<dyn Store>>,
    own: Mutex<TransientValues>,
}

#[derive(Default)]
struct TransientValues {
    values: BTreeMap<String, Vec<u8>>,
    bytes: usize,
}

impl TransientStore {
    /// Creates a store over the values of `below`.
    pub fn over(below: Arc<dyn Store>) -> Self {
        Self { below: Some(below), own: Mutex::default() }
    }

    fn own(&self) -> MutexGuard<'_, TransientValues> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

ctx_core::partial_debug!(TransientStore, it, values = it.own().values.len());

#[async_trait]
impl Store for TransientStore {
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>> {
        if let Some(value) = self.own().values.get(key).cloned() {
            return Ok(Some(value));
        }
        match &self.below {
            Some(below) => below.get(key).await,
            None => Ok(None),
        }
    }

    async fn put(&self, key: &str, value: &[u8]) -> Result<()> {
        let mut own = self.own();
        let was = own.values.get(key).map_or(0, |old| key.len() + old.len());
        let bytes = own.bytes - was + key.len() + value.len();
        if bytes > MOST {
            return Err(Error::new(ErrorKind::InvalidInput, "the store of this run is full")
                .with("most", MOST)
                .hint("the engine exceeds the limit of stored values"));
        }
        own.values.insert(key.to_owned(), value.to_owned());
        own.bytes = bytes;
        Ok(())
    }

    async fn list(&self, prefix: &str) -> Result<Vec<String>> {
        let mut keys: BTreeSet<String> = match &self.below {
            Some(below) => below.list(prefix).await?.into_iter().collect(),
            None => BTreeSet::new(),
        };
        let own = self.own();
        let from = own.values.range(prefix.to_owned()..);
        keys.extend(from.map(|(key, _)| key).take_while(|key| key.starts_with(prefix)).cloned());
        Ok(keys.into_iter().collect())
    }
}

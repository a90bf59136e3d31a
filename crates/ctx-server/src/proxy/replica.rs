//! What the replicas of a proxy share in a store.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use ctx_core::{Error, ErrorKind, Result};
use ctx_disk::lru::LruFolder;
use ctx_store::{AnyStore, Blob, EXPIRING};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::Handle;

/// The name of the secret of all replicas. It does not expire.
const SALT: &str = "proxy-salt";

/// What was not used for this time is removed when a replica starts.
const AGE: Duration = Duration::from_secs(30 * 24 * 3_600);

/// Maximum number of names in one answer of the store.
const MOST_NAMES: usize = 10_000;

/// A store that several proxies share.
///
/// Its calls run on a runtime of their own: some callers block their threads while they wait.
#[derive(Clone)]
pub struct ReplicaStore {
    store: AnyStore,
    runtime: Handle,
}

ctx_core::partial_debug!(ReplicaStore, it, runtime = it.runtime);

impl ReplicaStore {
    /// Wraps a store that was opened in `runtime`, which must not be the proxy's.
    pub fn new(store: AnyStore, runtime: Handle) -> Self {
        Self { store, runtime }
    }

    /// Returns the store, for calls that do not wait.
    pub(super) fn store(&self) -> AnyStore {
        self.store.clone()
    }

    /// Runs a call.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub(super) async fn call<T, F>(&self, call: impl FnOnce(AnyStore) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let running = self.runtime.spawn(call(self.store.clone()));
        running.await.unwrap_or_else(|_| Err(interrupted()))
    }

    /// Runs a call, and blocks the thread while it runs.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub(super) fn wait<T, F>(&self, call: impl FnOnce(AnyStore) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let (done, result) = mpsc::sync_channel(1);
        let call = call(self.store.clone());
        self.runtime.spawn(async move { done.send(call.await) });
        result.recv().unwrap_or_else(|_| Err(interrupted()))
    }

    /// Returns the secret of all replicas, which is this one if there is none yet.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub(super) fn salt(&self, own: &[u8]) -> Result<Vec<u8>> {
        let blob = Blob { name: SALT.to_owned(), bytes: own.to_vec() };
        self.wait(move |store| async move { store.create_blob(&blob).await })
    }

    /// Removes what was not used for 30 days, without waiting for it.
    pub(super) fn expire(&self) {
        let store = self.store.clone();
        self.runtime.spawn(async move {
            let expired = async {
                store.expire_conversations(AGE).await?;
                store.expire_blobs(EXPIRING, AGE).await
            };
            if let Err(error) = expired.await {
                tracing::warn!("old conversations stay in the shared store: {error}");
            }
        });
    }
}

fn interrupted() -> Error {
    Error::new(ErrorKind::Cancelled, "a call of the shared store was interrupted")
        .hint("the server is stopping; send the request again")
}

/// Values with ids: in a folder of this server, and in the store of its replicas.
#[derive(Debug)]
pub(super) struct SharedFolder {
    files: LruFolder,
    name: &'static str,
    replicas: Option<ReplicaStore>,
}

impl SharedFolder {
    /// Combines a folder with the values of that name in the store.
    pub(super) fn new(
        files: LruFolder,
        name: &'static str,
        replicas: Option<ReplicaStore>,
    ) -> Self {
        Self { files, name, replicas }
    }

    /// Saves a value, and returns its id. `what` is the error if it cannot be written.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`], and those of the store.
    pub(super) fn save(&self, value: &impl Serialize, what: &'static str) -> Result<String> {
        let id = uuid::Uuid::new_v4().simple().to_string();
        self.save_as(&id, value, what)?;
        Ok(id)
    }

    /// Saves a value with that id, as [`Self::save`].
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`], and those of the store.
    pub(super) fn save_as(
        &self,
        id: &str,
        value: &impl Serialize,
        what: &'static str,
    ) -> Result<()> {
        let bytes = serde_json::to_vec(value).map_err(|error| {
            Error::new(ErrorKind::Io, what).source(error).hint("please report this")
        })?;
        self.files.save(id, &bytes, what)?;
        self.put(vec![Blob { name: self.blob(id), bytes }])
    }

    /// Reads the value with that id; `None` if it is missing or damaged, or the store is away.
    pub(super) fn read<T: DeserializeOwned>(&self, id: &str) -> Option<T> {
        if let Some(known) = self.files.read(id) {
            return Some(known);
        }
        let bytes = self.get(self.blob(id), 0..u64::MAX)?;
        let value = serde_json::from_slice(&bytes).ok()?;
        // Best effort: the next call reads it from the store again.
        let _ = self.files.save(id, &bytes, "cannot keep a value of the shared store");
        Some(value)
    }

    /// Lets other names lead to a value. Only the store has them.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub(super) fn link(&self, names: impl IntoIterator<Item = String>, id: &str) -> Result<()> {
        let link = |name: String| Blob { name: self.link_name(&name), bytes: id.into() };
        match self.replicas {
            Some(_) => self.put(names.into_iter().map(link).collect()),
            None => Ok(()),
        }
    }

    /// Reads the value to which a name leads.
    pub(super) fn linked<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        self.read(&String::from_utf8(self.get(self.link_name(name), 0..u64::MAX)?).ok()?)
    }

    /// Whether a value has that id.
    pub(super) fn has(&self, id: &str) -> bool {
        self.path(id).exists() || self.get(self.blob(id), 0..0).is_some()
    }

    /// Returns the ids of the values of the store that begin with `prefix` and that this server does
    /// not have.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub(super) async fn unknown(&self, prefix: &str) -> Result<Vec<String>> {
        let Some(replicas) = &self.replicas else { return Ok(Vec::new()) };
        let prefix = self.blob(prefix);
        let names = replicas
            .call(move |store| async move { store.list_blobs(&prefix, MOST_NAMES).await })
            .await?;
        let ids = names.iter().filter_map(|name| name.rsplit('/').next());
        Ok(ids.filter(|id| !self.path(id).exists()).map(str::to_owned).collect())
    }

    /// Returns the ids of its files, the least recently saved first.
    pub(super) fn oldest_first(&self) -> Vec<String> {
        self.files.oldest_first()
    }

    /// Returns the path of the file with that id.
    pub(super) fn path(&self, id: &str) -> PathBuf {
        self.files.path(id)
    }

    /// Whether replicas share it.
    pub(super) fn is_shared(&self) -> bool {
        self.replicas.is_some()
    }

    fn blob(&self, id: &str) -> String {
        format!("{EXPIRING}{}/{id}", self.name)
    }

    fn link_name(&self, name: &str) -> String {
        format!("{EXPIRING}{}-of/{name}", self.name)
    }

    fn put(&self, blobs: Vec<Blob>) -> Result<()> {
        let Some(replicas) = &self.replicas else { return Ok(()) };
        replicas.wait(move |store| async move { store.put_blobs(&blobs).await })
    }

    fn get(&self, name: String, range: Range<u64>) -> Option<Vec<u8>> {
        let got = self
            .replicas
            .as_ref()?
            .wait(move |store| async move { store.get_blob(&name, range).await });
        got.unwrap_or_else(|error| {
            tracing::warn!("a value of the shared store is not read: {error}");
            None
        })
    }
}

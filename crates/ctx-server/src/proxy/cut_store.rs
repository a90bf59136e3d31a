//! Where the cuts of conversations are: in files of this server, or in the store of several replicas.

use ctx_core::{Error, ErrorKind, Result};

use super::replica::ReplicaStore;
use super::store::{ConversationStore, Queued, SavedConversation, StoredLine};

/// How often lines that fit anywhere are appended again after those of other replicas.
const ATTEMPTS: usize = 8;

/// The cuts of all conversations.
#[derive(Debug)]
pub(super) enum CutStore {
    Files(ConversationStore),
    Shared(ReplicaStore),
}

impl CutStore {
    /// Returns the ids of the conversations that this server has stored.
    pub(super) fn ids(&self) -> Vec<String> {
        match self {
            Self::Files(files) => files.ids(),
            Self::Shared(_) => Vec::new(),
        }
    }

    /// Returns the conversations of replicas whose ids begin with `prefix`, with their numbers of
    /// lines.
    pub(super) async fn of_replicas(&self, prefix: &str) -> Result<Vec<(String, u64)>> {
        let Self::Shared(replicas) = self else { return Ok(Vec::new()) };
        let prefix = prefix.to_owned();
        replicas.call(move |store| async move { store.list_conversations(&prefix).await }).await
    }

    /// Reads a conversation, and blocks the thread meanwhile.
    pub(super) fn read(&self, id: &str) -> Option<SavedConversation> {
        let replicas = match self {
            Self::Files(files) => return files.read(id),
            Self::Shared(replicas) => replicas.clone(),
        };
        let id = id.to_owned();
        let lines =
            replicas.wait(move |store| async move { store.read_conversation(&id, 0).await });
        match lines {
            Ok(lines) if lines.is_empty() => None,
            Ok(lines) => Some(SavedConversation::of(&lines)),
            Err(error) => {
                tracing::warn!("a conversation of the shared store is not read: {error}");
                None
            }
        }
    }

    /// Appends lines after the first `at`, and returns the new number of lines; `None` if they are
    /// lost, and later lines are until the whole conversation is written again.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Conflict`] if another replica has extended the conversation, and the errors of
    /// the store.
    pub(super) async fn append(
        &self,
        id: &str,
        at: u64,
        lines: Vec<StoredLine>,
    ) -> Result<Option<u64>> {
        let after = at + lines.len() as u64;
        match self {
            Self::Files(files) => {
                Ok(Some(after).filter(|_| files.append(id, lines) == Queued::Passed))
            }
            Self::Shared(replicas) => {
                let (id, lines) = (id.to_owned(), bytes(&lines));
                let extend = replicas.call(move |store| async move {
                    store.extend_conversation(&id, at, &lines).await
                });
                extend.await.map(Some)
            }
        }
    }

    /// Appends lines after those of other replicas, whatever these are. Returns whether they are
    /// stored; otherwise they are lost as with [`append`](Self::append).
    ///
    /// # Errors
    ///
    /// Those of [`append`](Self::append).
    pub(super) async fn append_anywhere(&self, id: &str, lines: Vec<StoredLine>) -> Result<bool> {
        let replicas = match self {
            Self::Files(files) => return Ok(files.append(id, lines) == Queued::Passed),
            Self::Shared(replicas) => replicas,
        };
        let (id, lines) = (id.to_owned(), bytes(&lines));
        let append = replicas.call(move |store| async move {
            let mut conflict = None;
            for _ in 0..ATTEMPTS {
                let listed = store.list_conversations(&id).await?;
                let known = listed.into_iter().find(|(known, _)| *known == id);
                let at = known.map_or(0, |(_, lines)| lines);
                match store.extend_conversation(&id, at, &lines).await {
                    Err(error) if error.kind() == ErrorKind::Conflict => conflict = Some(error),
                    done => return done.map(|_| true),
                }
            }
            Err(conflict.unwrap_or_else(unreached))
        });
        append.await
    }

    /// Returns the number of lost changes.
    pub(super) fn lost(&self) -> u64 {
        match self {
            Self::Files(files) => files.lost(),
            Self::Shared(_) => 0,
        }
    }

    /// Writes where this server listens, for another one with the same home.
    pub(super) fn announce(&self, url: &str) {
        if let Self::Files(files) = self {
            files.announce(url);
        }
    }

    /// Waits until all lines are written.
    pub(super) fn settle(&self) {
        if let Self::Files(files) = self {
            files.settle();
        }
    }
}

fn bytes(lines: &[StoredLine]) -> Vec<Vec<u8>> {
    lines.iter().filter_map(|line| serde_json::to_vec(line).ok()).collect()
}

fn unreached() -> Error {
    Error::new(ErrorKind::Contract, "a conversation was not extended").hint("please report this")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_write_that_failed_is_reported_by_the_next_append() {
        let home = tempfile::tempdir().unwrap();
        let store = CutStore::Files(ConversationStore::at(home.path()).unwrap());
        let undone = || vec![StoredLine::Compaction(None)];
        let path = home.path().join("aa-bb.jsonl");
        std::fs::create_dir(&path).unwrap();
        for is_anywhere in [false, true] {
            assert_eq!(store.append("aa-bb", 0, undone()).await.unwrap(), Some(1));
            store.settle();
            let is_stored = match is_anywhere {
                true => store.append_anywhere("aa-bb", undone()).await.unwrap(),
                false => store.append("aa-bb", 1, undone()).await.unwrap().is_some(),
            };
            assert!(!is_stored, "{is_anywhere}");
        }
    }
}

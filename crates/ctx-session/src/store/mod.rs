//! The session store: `sessions.json`, from session key to [`SessionEntry`].

mod entry;

use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, RawJson, Result};
use indexmap::IndexMap;

pub use entry::{ChatType, SessionEntry};

use crate::disk;
use crate::key::SessionKey;
use crate::lock::FileLock;

/// All sessions of one agent, in the order of the file.
///
/// Keys of shapes this version does not know are kept and written back; [`Sessions::iter`] passes
/// over them and [`Sessions::all`] shows them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sessions {
    entries: IndexMap<String, SessionEntry>,
}

impl Sessions {
    /// The session of that key.
    #[must_use]
    pub fn get(&self, key: &SessionKey) -> Option<&SessionEntry> {
        self.entries.get(&key.to_string())
    }

    /// The session of that key, for changes.
    pub fn get_mut(&mut self, key: &SessionKey) -> Option<&mut SessionEntry> {
        self.entries.get_mut(&key.to_string())
    }

    /// Sets a session and returns what was there.
    pub fn insert(&mut self, key: &SessionKey, entry: SessionEntry) -> Option<SessionEntry> {
        self.entries.insert(key.to_string(), entry)
    }

    /// Removes a session and returns it. Its transcript stays where it is.
    pub fn remove(&mut self, key: &SessionKey) -> Option<SessionEntry> {
        self.entries.shift_remove(&key.to_string())
    }

    /// All sessions whose keys can be read.
    pub fn iter(&self) -> impl Iterator<Item = (SessionKey, &SessionEntry)> {
        self.entries.iter().filter_map(|(key, entry)| Some((key.parse().ok()?, entry)))
    }

    /// All sessions by their keys as they stand in the file, also those of unknown shapes.
    pub fn all(&self) -> impl Iterator<Item = (&str, &SessionEntry)> {
        self.entries.iter().map(|(key, entry)| (key.as_str(), entry))
    }

    /// How many sessions there are, those of unknown shapes included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// The store on disk.
///
/// Reading needs no lock: the file is only ever replaced as a whole. An update reads, changes and
/// writes under a lock that holds across processes, so no update is lost. A file that cannot be
/// understood is an error and stays as it is.
#[derive(Clone, Debug)]
pub struct SessionStore {
    path: PathBuf,
}

impl SessionStore {
    /// The store at `path`, for example [`Home::sessions_file`](crate::paths::Home::sessions_file).
    /// Nothing is read yet.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads all sessions. A file that does not exist yet holds none.
    pub fn load(&self) -> Result<Sessions> {
        match std::fs::read(&self.path) {
            Ok(bytes) => self.parse(&bytes),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Sessions::default()),
            Err(e) => Err(disk::io_error("cannot read the session store", &self.path, e)),
        }
    }

    /// Changes the sessions: reads them, passes them to `change`, and writes them if it succeeds
    /// and changed something. Waits while another process is updating.
    pub fn update<T>(&self, change: impl FnOnce(&mut Sessions) -> Result<T>) -> Result<T> {
        disk::create_private_dir(disk::parent(&self.path))?;
        let _lock = FileLock::exclusive(&self.path)?;
        let before = self.load()?;
        let mut sessions = before.clone();
        let answer = change(&mut sessions)?;
        if sessions != before {
            let mut json = serde_json::to_vec_pretty(&sessions.entries).map_err(|e| {
                Error::new(ErrorKind::InvalidInput, "the sessions cannot be written as JSON")
                    .with("path", self.path.display())
                    .source(e)
            })?;
            json.push(b'\n');
            disk::replace(&self.path, &json)?;
        }
        Ok(answer)
    }

    fn parse(&self, bytes: &[u8]) -> Result<Sessions> {
        // In two steps, so that an error can say which session is damaged.
        let raw: IndexMap<String, RawJson> =
            serde_json::from_slice(bytes).map_err(|e| self.damaged(&e))?;
        let mut entries = IndexMap::with_capacity(raw.len());
        for (key, json) in raw {
            let entry = serde_json::from_str(json.as_str())
                .map_err(|e| self.damaged(&e).with("session key", format!("'{key}'")))?;
            entries.insert(key, entry);
        }
        Ok(Sessions { entries })
    }

    fn damaged(&self, error: &serde_json::Error) -> Error {
        Error::new(ErrorKind::Corrupt, "the session store is damaged and was left as it is")
            .with("path", self.path.display())
            .with("cause", error)
            .hint(
                "correct the file by hand, or move it away to begin an empty store: the \
                 transcripts beside it are complete without it, and can be opened by their path",
            )
    }
}

#[cfg(test)]
mod tests {
    use ctx_core::Timestamp;

    use super::*;

    fn store() -> (tempfile::TempDir, SessionStore) {
        let dir = tempfile::tempdir().unwrap();
        let store = SessionStore::at(dir.path().join("sessions/sessions.json"));
        (dir, store)
    }

    const FULL: &str = r#"{
  "agent:main:telegram:group:-1": {
    "sessionId": "s1",
    "updatedAt": 1765233665292,
    "sessionFile": "/tmp/s1.jsonl",
    "chatType": "group",
    "provider": "telegram",
    "subject": "friends",
    "room": "r",
    "space": "sp",
    "displayName": "Friends",
    "thinkingLevel": "high",
    "verboseLevel": "on",
    "reasoningLevel": "stream",
    "elevatedLevel": "ask",
    "sendPolicy": "allow",
    "providerOverride": "anthropic",
    "modelOverride": "claude",
    "authProfileOverride": "work",
    "inputTokens": 1,
    "outputTokens": 2,
    "totalTokens": 3,
    "contextTokens": 200000,
    "compactionCount": 4,
    "memoryFlushAt": 1765233665293,
    "memoryFlushCompactionCount": 3,
    "fieldOfTomorrow": {
      "b": 1,
      "a": [
        2.5
      ]
    }
  },
  "shape:of:tomorrow": {
    "sessionId": "s2",
    "updatedAt": 0,
    "chatType": "channel"
  }
}
"#;

    #[test]
    fn every_field_survives_and_unknown_ones_too() {
        let (_dir, store) = store();
        store.update(|_| Ok(())).unwrap();
        std::fs::write(store.path(), FULL).unwrap();
        let key: SessionKey = "agent:main:telegram:group:-1".parse().unwrap();
        let sessions = store.load().unwrap();
        let entry = sessions.get(&key).unwrap();
        assert_eq!(entry.chat_type, Some(ChatType::Group));
        assert_eq!(entry.memory_flush_at, Some(Timestamp(1765233665293)));
        assert_eq!(entry.other.keys().collect::<Vec<_>>(), ["fieldOfTomorrow"]);
        assert_eq!((sessions.len(), sessions.iter().count()), (2, 1));

        store
            .update(|s| {
                s.get_mut(&key).unwrap().compaction_count = Some(5);
                Ok(())
            })
            .unwrap();
        let expected = FULL.replace("\"compactionCount\": 4", "\"compactionCount\": 5");
        assert_eq!(std::fs::read_to_string(store.path()).unwrap(), expected);
    }

    #[test]
    fn a_damaged_store_is_an_error_and_is_not_overwritten() {
        let (_dir, store) = store();
        store.update(|_| Ok(())).unwrap();
        let cases = [
            ("", "damaged"),
            ("{\"agent:main:main\": {\"sessionId\": \"s\"", "damaged"),
            ("[]", "damaged"),
            ("{\"agent:main:main\": {\"sessionId\": 5}}", "agent:main:main"),
            ("{\"agent:main:main\": {\"updatedAt\": 5}}", "sessionId"),
        ];
        for (text, named) in cases {
            std::fs::write(store.path(), text).unwrap();
            let insert = store.update(|s| {
                s.insert(&SessionKey::Global, SessionEntry::new("x", Timestamp(1)));
                Ok(())
            });
            let error = insert.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert!(error.to_string().contains(named), "{error}");
            assert!(error.hint_text().is_some());
            assert_eq!(std::fs::read_to_string(store.path()).unwrap(), text);
        }
        let deep = format!("{{\"k\": {}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
        std::fs::write(store.path(), deep).unwrap();
        assert_eq!(store.load().unwrap_err().kind(), ErrorKind::Corrupt);
    }

    #[test]
    fn a_failed_change_writes_nothing() {
        let (_dir, store) = store();
        let failed: Result<()> = store.update(|s| {
            s.insert(&SessionKey::Global, SessionEntry::new("x", Timestamp(1)));
            Err(Error::new(ErrorKind::Cancelled, "no"))
        });
        assert_eq!(failed.unwrap_err().kind(), ErrorKind::Cancelled);
        assert!(!store.path().exists());
    }

    #[test]
    fn concurrent_updates_are_all_there() {
        let (_dir, store) = store();
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let store = &store;
                scope.spawn(move || {
                    for n in 0..10 {
                        let key: SessionKey = format!("hook:{thread}-{n}").parse().unwrap();
                        store
                            .update(|s| {
                                s.insert(&key, SessionEntry::new("x", Timestamp(n)));
                                Ok(())
                            })
                            .unwrap();
                    }
                });
            }
        });
        assert_eq!(store.load().unwrap().len(), 80);
    }
}

//! The session store: `sessions.json`, a map from session key to [`SessionEntry`].

mod entry;
mod sessions;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use ctx_core::{Error, ErrorKind, Result};

pub use entry::{ChatType, SessionEntry};
pub use sessions::Sessions;

use crate::disk::{self, FileLock};
use crate::key::SessionKey;
use sessions::Pairs;

/// The default time that an update waits for another one. Updates take milliseconds unless a
/// process hangs.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// The store on disk.
///
/// Reading needs no lock: the file is only ever replaced as a whole. An update reads, changes and
/// writes under a lock across processes, so no update is lost. A file that cannot be parsed is an
/// error and is left unchanged; a single entry that cannot be read is kept (see
/// [`Sessions::unreadable`]).
#[derive(Clone, Debug)]
pub struct SessionStore {
    path: PathBuf,
    lock_wait: Duration,
}

impl SessionStore {
    /// Creates a store at `path`, for example
    /// [`Home::sessions_file`](crate::Home::sessions_file). Nothing is read yet.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), lock_wait: LOCK_WAIT }
    }

    /// Reads all sessions. A missing file contains none.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] if the file cannot be read, [`ErrorKind::Corrupt`] if it is not a JSON
    /// object, or has a key twice.
    pub fn load(&self) -> Result<Sessions> {
        self.read()?.sessions().map_err(|twice| self.duplicate(&twice))
    }

    fn read(&self) -> Result<Pairs> {
        match disk::read(&self.path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|e| self.damaged().source(e)),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Pairs::default()),
            Err(e) => Err(disk::io_error("cannot read the session store", &self.path, e)),
        }
    }

    /// Reads one session; `None` if there is none with that key, or if its entry cannot be read. The
    /// entries of the others are not parsed.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn get(&self, key: &SessionKey) -> Result<Option<SessionEntry>> {
        let pairs = self.read()?;
        pairs.entry(&key.to_string()).map_err(|twice| self.duplicate(&twice))
    }

    /// Updates the sessions: reads them, passes them to `change`, and writes them if it succeeds
    /// and changed something. Waits while another update runs.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Locked`] if the other update does not finish in time, [`ErrorKind::Corrupt`]
    /// and [`ErrorKind::Io`] if the file cannot be parsed, read or replaced, and the errors of
    /// `change`. The file is then unchanged.
    pub fn update<T>(&self, change: impl FnOnce(&mut Sessions) -> Result<T>) -> Result<T> {
        disk::create_private_dir(disk::parent(&self.path))?;
        let _lock = FileLock::with_timeout(&self.path, self.lock_wait)?;
        let before = self.load()?;
        let mut sessions = before.clone();
        let answer = change(&mut sessions)?;
        if sessions != before {
            let mut json = serde_json::to_vec_pretty(&sessions).map_err(|e| {
                Error::new(ErrorKind::InvalidInput, "cannot write the sessions as JSON")
                    .with("path", self.path.display())
                    .source(e)
            })?;
            json.push(b'\n');
            disk::replace(&self.path, |out| out.write_all(&json))?;
        }
        Ok(answer)
    }

    fn duplicate(&self, key: &str) -> Error {
        self.damaged()
            .with("duplicate session key", format!("'{key}'"))
            .hint("remove one of the two from the file, or change the key of one")
    }

    fn damaged(&self) -> Error {
        Error::new(ErrorKind::Corrupt, "the session store is damaged and was not changed")
            .with("path", self.path.display())
            .hint(
                "correct the file, or move it away to begin an empty store: the \
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
    "sessionStartedAt": 1765233665290,
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
    "spawnedBy": "agent:main:main",
    "spawnDepth": 1,
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
    fn all_fields_survive_including_unknown_ones() {
        let (_dir, store) = store();
        store.update(|_| Ok(())).unwrap();
        std::fs::write(&store.path, FULL).unwrap();
        let key: SessionKey = "agent:main:telegram:group:-1".parse().unwrap();
        let sessions = store.load().unwrap();
        let entry = sessions.get(&key).unwrap();
        assert_eq!(store.get(&key).unwrap().as_ref(), Some(entry));
        assert_eq!(entry.chat_type, Some(ChatType::Group));
        assert_eq!(entry.memory_flush_at, Some(Timestamp(1765233665293)));
        assert_eq!(entry.other.keys().collect::<Vec<_>>(), ["fieldOfTomorrow"]);
        assert_eq!((sessions.all().count(), sessions.iter().count()), (2, 1));

        store
            .update(|s| {
                s.get_mut(&key).unwrap().compaction_count = Some(5);
                Ok(())
            })
            .unwrap();
        let expected = FULL.replace("\"compactionCount\": 4", "\"compactionCount\": 5");
        assert_eq!(std::fs::read_to_string(&store.path).unwrap(), expected);
    }

    #[test]
    fn a_damaged_store_is_an_error_and_is_not_overwritten() {
        let (_dir, store) = store();
        store.update(|_| Ok(())).unwrap();
        let cases = [
            ("", "damaged"),
            ("{\"agent:main:main\": {\"sessionId\": \"s\"", "damaged"),
            ("[]", "damaged"),
            (r#"{"a": {"sessionId": "1"}, "b": {"sessionId": "2"}, "a": 5}"#, "'a'"),
        ];
        for (text, named) in cases {
            std::fs::write(&store.path, text).unwrap();
            let insert = store.update(|s| {
                s.insert(&SessionKey::Global, SessionEntry::new("x", Timestamp(1))).map(drop)
            });
            let error = insert.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert!(error.to_string().contains(named), "{error}");
            assert!(error.hint_text().is_some());
            let of_one = store.get(&SessionKey::Global).unwrap_err();
            assert_eq!(of_one.to_string(), error.to_string());
            assert_eq!(std::fs::read_to_string(&store.path).unwrap(), text);
        }
    }

    #[test]
    fn an_unreadable_entry_stays_and_hides_no_other() {
        let (_dir, store) = store();
        store.update(|_| Ok(())).unwrap();
        let main: SessionKey = "agent:main:main".parse().unwrap();
        let deep = format!("{{\"x\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
        let bad = [
            r#"{"sessionId": "s",   "totalTokens": -5}"#,
            r#"{"sessionId": 5}"#,
            r#"{"updatedAt": 5}"#,
            "7",
            &deep,
        ];
        for json in bad {
            let text = format!("{{\"agent:main:main\":{json},\"hook:1\":{{\"sessionId\":\"t\"}}}}");
            std::fs::write(&store.path, text).unwrap();
            let sessions = store.load().unwrap();
            assert_eq!(sessions.all().map(|(key, _)| key).collect::<Vec<_>>(), ["hook:1"]);
            assert_eq!((sessions.all().count(), sessions.get(&main)), (1, None));
            assert_eq!(store.get(&main).unwrap(), None);
            let unreadable: Vec<_> = sessions.unreadable().collect();
            assert!(matches!(unreadable[..], [("agent:main:main", why)] if !why.is_empty()));

            let entry = || SessionEntry::new("new", Timestamp(1));
            store.update(|s| s.insert(&SessionKey::Global, entry())).unwrap();
            let error = store.update(|s| s.insert(&main, entry())).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert!(error.to_string().contains("agent:main:main"), "{error}");
            assert_eq!(store.update(|s| Ok(s.remove(&main))).unwrap(), None);
            let written = std::fs::read_to_string(&store.path).unwrap();
            assert!(written.contains(json));
        }
    }

    #[test]
    fn an_update_waits_for_a_limited_time() {
        let (_dir, store) = store();
        store.update(|_| Ok(())).unwrap();
        let held = FileLock::try_exclusive(&store.path).unwrap();
        let hurried = SessionStore { lock_wait: Duration::from_millis(20), ..store };
        let error = hurried.update(|_| Ok(())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked);
        assert!(error.hint_text().is_some_and(|h| h.contains("sessions.json.lock")));
        drop(held);
        hurried.update(|_| Ok(())).unwrap();
    }

    #[test]
    fn a_failed_change_writes_nothing() {
        let (_dir, store) = store();
        let failed: Result<()> = store.update(|s| {
            s.insert(&SessionKey::Global, SessionEntry::new("x", Timestamp(1)))?;
            Err(Error::new(ErrorKind::Cancelled, "no"))
        });
        assert_eq!(failed.unwrap_err().kind(), ErrorKind::Cancelled);
        assert!(!store.path.exists());
    }

    #[test]
    fn no_concurrent_update_is_lost() {
        let (_dir, store) = store();
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let store = &store;
                scope.spawn(move || {
                    for n in 0..10 {
                        let key: SessionKey = format!("hook:{thread}-{n}").parse().unwrap();
                        store
                            .update(|s| s.insert(&key, SessionEntry::new("x", Timestamp(n))))
                            .unwrap();
                    }
                });
            }
        });
        assert_eq!(store.load().unwrap().all().count(), 80);
    }
}

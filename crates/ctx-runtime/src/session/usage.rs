//! The usage counters in `sessions.json`.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::time::Duration;

use ctx_core::{Result, Timestamp, Usage};
use ctx_session::key::{FileId, SessionKey};
use ctx_session::{Home, SessionEntry, SessionStore};

use crate::sync::locked;

/// Minimum interval between two writes of the counters. The file is replaced durably as a whole,
/// which would cost more than the turns themselves if done for every turn.
const INTERVAL: Duration = Duration::from_secs(1);

/// What happened in a session since its counters were written.
#[derive(Clone, Debug, Default)]
pub(crate) struct UsageDelta {
    /// The session id: the key may refer to another session by the time this is written.
    pub(crate) id: String,
    pub(crate) updated_at: Timestamp,
    pub(crate) usage: Usage,
    /// Its context window.
    pub(crate) window: Option<u64>,
    pub(crate) compactions: u64,
    /// Whether a compaction was just stored.
    pub(crate) compacted: bool,
    pub(crate) flushed: Option<(Timestamp, u64)>,
}

impl UsageDelta {
    fn add(&mut self, later: &Self) {
        if self.id != later.id {
            *self = Self { id: later.id.clone(), ..Self::default() };
        }
        self.updated_at = self.updated_at.max(later.updated_at);
        self.usage.input = self.usage.input.saturating_add(later.usage.prompt());
        self.usage.output = self.usage.output.saturating_add(later.usage.output);
        let total = self.usage.total_tokens.unwrap_or_default();
        self.usage.total_tokens = Some(total.saturating_add(later.usage.total()));
        self.window = later.window.or(self.window);
        self.compactions = self.compactions.max(later.compactions);
        self.flushed = later.flushed.or(self.flushed);
    }
}

/// Counters that are not written yet.
pub(crate) struct UsageCounters {
    home: Home,
    state: Mutex<Unwritten>,
    /// Held while writing. Other threads wait here in fair order, instead of retrying the file
    /// lock, which has no order.
    writing: Mutex<()>,
}

#[derive(Default)]
struct Unwritten {
    deltas: HashMap<SessionKey, UsageDelta>,
    /// Sessions to add to the store.
    new_sessions: Vec<NewSession>,
    /// Sessions that were not added, as another process added one first.
    lost: HashSet<u64>,
    numbers: u64,
    written: Option<Duration>,
}

impl Unwritten {
    fn is_due(&self, now: Duration) -> bool {
        self.written.is_none_or(|written| now.saturating_sub(written) >= INTERVAL)
    }
}

/// Changes that the store of one agent does not have yet.
#[derive(Default)]
struct AgentChanges {
    new_sessions: Vec<NewSession>,
    deltas: Vec<(SessionKey, UsageDelta)>,
}

/// A session that is not in the store yet.
struct NewSession {
    number: u64,
    agent: FileId,
    key: SessionKey,
    entry: SessionEntry,
    /// The session of the key when this one was created.
    seen: Option<String>,
}

impl UsageCounters {
    pub(crate) fn new(home: Home) -> Self {
        Self { home, state: Mutex::default(), writing: Mutex::default() }
    }

    /// Records the counters. Returns whether they should be written now.
    pub(crate) fn record(&self, key: &SessionKey, delta: &UsageDelta, now: Duration) -> bool {
        let mut state = locked(&self.state);
        // A process that opens the session after a crash must know of a flush or a compaction:
        // otherwise it would repeat or skip a flush.
        let is_urgent = delta.flushed.is_some() || delta.compacted;
        state.deltas.entry(key.clone()).or_default().add(delta);
        let due = state.is_due(now);
        if due || is_urgent {
            state.written = Some(now);
        }
        due || is_urgent
    }

    /// Records the counters and writes them.
    ///
    /// # Errors
    ///
    /// The errors of [`SessionStore::update`].
    pub(crate) fn write_now(&self, key: &SessionKey, delta: &UsageDelta) -> Result<()> {
        locked(&self.state).deltas.entry(key.clone()).or_default().add(delta);
        self.write()
    }

    /// Adds a new session to the store, replacing the session that was `seen` there. Returns
    /// `false` if the store contains another session by now. Concurrent calls are written together,
    /// by the first of them.
    ///
    /// # Errors
    ///
    /// The errors of [`SessionStore::update`]. The session is not in the store then.
    pub(crate) fn begin(
        &self,
        agent: &FileId,
        key: &SessionKey,
        entry: SessionEntry,
        seen: Option<String>,
    ) -> Result<bool> {
        let number = {
            let mut state = locked(&self.state);
            state.numbers += 1;
            let number = state.numbers;
            let (agent, key) = (agent.clone(), key.clone());
            state.new_sessions.push(NewSession { number, agent, key, entry, seen });
            number
        };
        let _writing = locked(&self.writing);
        let take_mine = || {
            let mut state = locked(&self.state);
            let at = state.new_sessions.iter().position(|new| new.number == number)?;
            Some(state.new_sessions.remove(at))
        };
        if locked(&self.state).new_sessions.iter().any(|new| new.number == number) {
            let _ = self.write_all();
            // The failed write may have been caused by another entry.
            if let Some(mine) = take_mine() {
                let lost = self.write_for(agent, &[mine], &[])?;
                return Ok(lost.is_empty());
            }
        }
        Ok(!locked(&self.state).lost.remove(&number))
    }

    /// Writes all counters if a write is due.
    ///
    /// # Errors
    ///
    /// The errors of [`SessionStore::update`].
    pub(crate) fn write_if_due(&self, now: Duration) -> Result<()> {
        {
            let mut state = locked(&self.state);
            if state.deltas.is_empty() || !state.is_due(now) {
                return Ok(());
            }
            state.written = Some(now);
        }
        self.write()
    }

    /// Writes all counters. A failed write is retried with the next write.
    ///
    /// # Errors
    ///
    /// The errors of [`SessionStore::update`].
    pub(crate) fn write(&self) -> Result<()> {
        let _writing = locked(&self.writing);
        self.write_all()
    }

    fn write_all(&self) -> Result<()> {
        let (deltas, new_sessions) = {
            let mut state = locked(&self.state);
            (std::mem::take(&mut state.deltas), std::mem::take(&mut state.new_sessions))
        };
        let mut agents: HashMap<FileId, AgentChanges> = HashMap::new();
        for new in new_sessions {
            agents.entry(new.agent.clone()).or_default().new_sessions.push(new);
        }
        for (key, delta) in deltas {
            let agent = key.agent().cloned().unwrap_or_else(FileId::main);
            agents.entry(agent).or_default().deltas.push((key, delta));
        }
        let mut failed = Ok(());
        for (agent, AgentChanges { new_sessions, deltas }) in agents {
            match self.write_for(&agent, &new_sessions, &deltas) {
                Ok(lost) => locked(&self.state).lost.extend(lost),
                Err(error) => {
                    failed = Err(error);
                    self.put_back(AgentChanges { new_sessions, deltas });
                }
            }
        }
        failed
    }

    /// Keeps what could not be written for the next write.
    fn put_back(&self, changes: AgentChanges) {
        let mut state = locked(&self.state);
        state.new_sessions.extend(changes.new_sessions);
        for (key, delta) in changes.deltas {
            let later = state.deltas.remove(&key);
            let known = state.deltas.entry(key).or_insert(delta);
            if let Some(later) = later {
                known.add(&later);
            }
        }
    }

    /// Writes to the store of one agent. Returns the numbers of sessions that were not added, as
    /// their keys have other sessions by now.
    fn write_for(
        &self,
        agent: &FileId,
        new_sessions: &[NewSession],
        deltas: &[(SessionKey, UsageDelta)],
    ) -> Result<Vec<u64>> {
        SessionStore::at(self.home.sessions_file(agent)).update(|sessions| {
            let mut lost = Vec::new();
            for new in new_sessions {
                let there = sessions.get(&new.key).map(|entry| &entry.session_id);
                match there == new.seen.as_ref() {
                    true => drop(sessions.insert(&new.key, new.entry.clone())?),
                    false => lost.push(new.number),
                }
            }
            for (key, delta) in deltas {
                // Counters of another session with the same key do not belong to this session.
                let entry = sessions.get_mut(key).filter(|entry| entry.session_id == delta.id);
                let Some(entry) = entry else { continue };
                let add = |known: &mut Option<u64>, more: u64| {
                    if more > 0 {
                        *known = Some(known.unwrap_or_default().saturating_add(more));
                    }
                };
                entry.updated_at = entry.updated_at.max(delta.updated_at);
                add(&mut entry.input_tokens, delta.usage.input);
                add(&mut entry.output_tokens, delta.usage.output);
                add(&mut entry.total_tokens, delta.usage.total_tokens.unwrap_or_default());
                entry.context_tokens = delta.window.or(entry.context_tokens);
                if delta.compactions > 0 {
                    let most = entry.compaction_count.unwrap_or_default().max(delta.compactions);
                    entry.compaction_count = Some(most);
                }
                if let Some((at, count)) = delta.flushed {
                    entry.memory_flush_at = Some(at);
                    entry.memory_flush_compaction_count = Some(count);
                }
            }
            Ok(lost)
        })
    }
}

impl Drop for UsageCounters {
    fn drop(&mut self) {
        // The error cannot be reported any more; the transcripts are complete.
        let _ = self.write();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delta(id: &str, input: u64, compactions: u64) -> UsageDelta {
        let usage = Usage { input, ..Usage::default() };
        UsageDelta { id: id.into(), usage, compactions, ..UsageDelta::default() }
    }

    #[test]
    fn usage_is_not_counted_for_another_session_of_the_same_key() {
        let dir = tempfile::tempdir().unwrap();
        let (home, agent) = (Home::at(dir.path()), FileId::main());
        let (counters, key) = (UsageCounters::new(home.clone()), SessionKey::main(agent.clone()));
        let store = SessionStore::at(home.sessions_file(&agent));
        let entry = |id: &str| SessionEntry::new(id, Timestamp(1));
        let stored = || store.load().unwrap().get(&key).unwrap().clone();
        assert!(counters.begin(&agent, &key, entry("old"), None).unwrap());
        assert!(!counters.begin(&agent, &key, entry("new"), None).unwrap(), "there is one by now");
        assert!(!counters.begin(&agent, &key, entry("new"), Some("other".into())).unwrap());
        assert_eq!(stored().session_id, "old");
        counters.record(&key, &delta("old", 5, 2), Duration::ZERO);
        counters.write().unwrap();
        assert_eq!((stored().input_tokens, stored().compaction_count), (Some(5), Some(2)));
        // Recorded in time but written late: another process created a session meanwhile.
        counters.record(&key, &delta("old", 7, 3), Duration::ZERO);
        let begun = |sessions: &mut ctx_session::Sessions| sessions.insert(&key, entry("new"));
        store.update(begun).unwrap();
        counters.write().unwrap();
        assert_eq!((stored().input_tokens, stored().compaction_count), (None, None));
        counters.record(&key, &delta("old", 7, 3), Duration::ZERO);
        counters.record(&key, &delta("new", 1, 0), Duration::ZERO);
        counters.write().unwrap();
        assert_eq!((stored().input_tokens, stored().compaction_count), (Some(1), None));
    }
}

//! The counters in `sessions.json`.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::time::Duration;

use ctx_core::{Result, Timestamp, Usage};
use ctx_session::key::{FileId, SessionKey};
use ctx_session::paths::Home;
use ctx_session::store::{SessionEntry, SessionStore};

use super::locked;

/// How often counters are written. The file is replaced as a whole, durably: to do that for every
/// turn of every session would cost more than the turns.
const EVERY: Duration = Duration::from_secs(1);

/// What happened in a session since its counters were written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// The session: its key may stand for another one by the time this is written.
    pub(crate) id: String,
    pub(crate) updated_at: Timestamp,
    pub(crate) usage: Usage,
    /// The window it runs in.
    pub(crate) window: Option<u64>,
    pub(crate) compactions: u64,
    /// Whether one was just stored.
    pub(crate) compacted: bool,
    pub(crate) flushed: Option<(Timestamp, u64)>,
}

impl Tally {
    fn take(&mut self, later: &Self) {
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
pub(crate) struct Book {
    home: Home,
    state: Mutex<State>,
    /// Held by whoever writes: the others wait here, in the order of the system, instead of trying
    /// for the file's lock, which knows no order.
    writing: Mutex<()>,
}

#[derive(Default)]
struct State {
    tallies: HashMap<SessionKey, Tally>,
    /// Sessions that begin.
    beginning: Vec<Beginning>,
    /// Those that did not, as somebody else began one.
    lost: HashSet<u64>,
    numbers: u64,
    written: Option<Duration>,
}

impl State {
    fn is_due(&self, now: Duration) -> bool {
        self.written.is_none_or(|written| now.saturating_sub(written) >= EVERY)
    }
}

/// What the store of one agent does not know yet.
#[derive(Default)]
struct News {
    beginning: Vec<Beginning>,
    tallies: Vec<(SessionKey, Tally)>,
}

/// A session that is not in the store yet.
struct Beginning {
    number: u64,
    agent: FileId,
    key: SessionKey,
    entry: SessionEntry,
    /// The session that the key stood for when this one was made.
    seen: Option<String>,
}

impl Book {
    pub(crate) fn new(home: Home) -> Self {
        Self { home, state: Mutex::default(), writing: Mutex::default() }
    }

    /// Takes note, and says whether it is time to write.
    pub(crate) fn note(&self, key: &SessionKey, tally: &Tally, now: Duration) -> bool {
        let mut state = locked(&self.state);
        // What a flush and a compaction did must be known to whoever opens the session after a
        // crash: else the next cycle would do it twice, or not at all.
        let is_news = tally.flushed.is_some() || tally.compacted;
        state.tallies.entry(key.clone()).or_default().take(tally);
        let due = state.is_due(now);
        if due || is_news {
            state.written = Some(now);
        }
        due || is_news
    }

    /// Takes note, and writes.
    ///
    /// # Errors
    ///
    /// As [`SessionStore::update`].
    pub(crate) fn write_now(&self, key: &SessionKey, tally: &Tally) -> Result<()> {
        locked(&self.state).tallies.entry(key.clone()).or_default().take(tally);
        self.write()
    }

    /// Puts a session that begins into the store, in the place of the one that was `seen` there.
    /// `false` if another is there by now. Those that begin at the same time are written together, by
    /// the first of them.
    ///
    /// # Errors
    ///
    /// As [`SessionStore::update`]. It is not there then.
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
            state.beginning.push(Beginning { number, agent, key, entry, seen });
            number
        };
        let _writing = locked(&self.writing);
        let take_mine = || {
            let mut state = locked(&self.state);
            let at = state.beginning.iter().position(|beginning| beginning.number == number)?;
            Some(state.beginning.remove(at))
        };
        if locked(&self.state).beginning.iter().any(|beginning| beginning.number == number) {
            let _ = self.write_all();
            // What failed may be another's fault.
            if let Some(mine) = take_mine() {
                let lost = self.write_for(agent, &[mine], &[])?;
                return Ok(lost.is_empty());
            }
        }
        Ok(!locked(&self.state).lost.remove(&number))
    }

    /// Writes all counters if it is time to.
    ///
    /// # Errors
    ///
    /// As [`SessionStore::update`].
    pub(crate) fn write_if_due(&self, now: Duration) -> Result<()> {
        {
            let mut state = locked(&self.state);
            if state.tallies.is_empty() || !state.is_due(now) {
                return Ok(());
            }
            state.written = Some(now);
        }
        self.write()
    }

    /// Writes all counters. What cannot be written is tried again with the next.
    ///
    /// # Errors
    ///
    /// As [`SessionStore::update`].
    pub(crate) fn write(&self) -> Result<()> {
        let _writing = locked(&self.writing);
        self.write_all()
    }

    fn write_all(&self) -> Result<()> {
        let (tallies, beginning) = {
            let mut state = locked(&self.state);
            (std::mem::take(&mut state.tallies), std::mem::take(&mut state.beginning))
        };
        let mut agents: HashMap<FileId, News> = HashMap::new();
        for one in beginning {
            agents.entry(one.agent.clone()).or_default().beginning.push(one);
        }
        for (key, tally) in tallies {
            let agent = key.agent().cloned().unwrap_or_else(FileId::main);
            agents.entry(agent).or_default().tallies.push((key, tally));
        }
        let mut failed = Ok(());
        for (agent, News { beginning, tallies }) in agents {
            match self.write_for(&agent, &beginning, &tallies) {
                Ok(lost) => locked(&self.state).lost.extend(lost),
                Err(error) => {
                    failed = Err(error);
                    self.give_back(News { beginning, tallies });
                }
            }
        }
        failed
    }

    /// Keeps what could not be written for the next time.
    fn give_back(&self, news: News) {
        let mut state = locked(&self.state);
        state.beginning.extend(news.beginning);
        for (key, tally) in news.tallies {
            let later = state.tallies.remove(&key);
            let known = state.tallies.entry(key).or_insert(tally);
            if let Some(later) = later {
                known.take(&later);
            }
        }
    }

    /// Writes to the store of one agent. The numbers of sessions that did not begin, as their keys
    /// stand for others by now.
    fn write_for(
        &self,
        agent: &FileId,
        beginning: &[Beginning],
        tallies: &[(SessionKey, Tally)],
    ) -> Result<Vec<u64>> {
        SessionStore::at(self.home.sessions_file(agent)).update(|sessions| {
            let mut lost = Vec::new();
            for one in beginning {
                let there = sessions.get(&one.key).map(|entry| &entry.session_id);
                match there == one.seen.as_ref() {
                    true => drop(sessions.insert(&one.key, one.entry.clone())?),
                    false => lost.push(one.number),
                }
            }
            for (key, tally) in tallies {
                // What another session of that name did is no doing of this one.
                let entry = sessions.get_mut(key).filter(|entry| entry.session_id == tally.id);
                let Some(entry) = entry else { continue };
                let add = |known: &mut Option<u64>, more: u64| {
                    if more > 0 {
                        *known = Some(known.unwrap_or_default().saturating_add(more));
                    }
                };
                entry.updated_at = entry.updated_at.max(tally.updated_at);
                add(&mut entry.input_tokens, tally.usage.input);
                add(&mut entry.output_tokens, tally.usage.output);
                add(&mut entry.total_tokens, tally.usage.total_tokens.unwrap_or_default());
                entry.context_tokens = tally.window.or(entry.context_tokens);
                if tally.compactions > 0 {
                    let most = entry.compaction_count.unwrap_or_default().max(tally.compactions);
                    entry.compaction_count = Some(most);
                }
                if let Some((at, count)) = tally.flushed {
                    entry.memory_flush_at = Some(at);
                    entry.memory_flush_compaction_count = Some(count);
                }
            }
            Ok(lost)
        })
    }
}

impl Drop for Book {
    fn drop(&mut self) {
        // Nobody is left to hear of it; the transcripts are complete without.
        let _ = self.write();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(id: &str, input: u64, compactions: u64) -> Tally {
        let usage = Usage { input, ..Usage::default() };
        Tally { id: id.into(), usage, compactions, ..Tally::default() }
    }

    #[test]
    fn what_one_session_did_is_not_counted_for_another_of_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let (home, agent) = (Home::at(dir.path()), FileId::main());
        let (book, key) = (Book::new(home.clone()), SessionKey::main(agent.clone()));
        let store = SessionStore::at(home.sessions_file(&agent));
        let entry = |id: &str| SessionEntry::new(id, Timestamp(1));
        let stored = || store.load().unwrap().get(&key).unwrap().clone();
        assert!(book.begin(&agent, &key, entry("old"), None).unwrap());
        assert!(!book.begin(&agent, &key, entry("new"), None).unwrap(), "there is one by now");
        assert!(!book.begin(&agent, &key, entry("new"), Some("other".into())).unwrap());
        assert_eq!(stored().session_id, "old");
        book.note(&key, &tally("old", 5, 2), Duration::ZERO);
        book.write().unwrap();
        assert_eq!((stored().input_tokens, stored().compaction_count), (Some(5), Some(2)));
        // Noted in time, and written late: another process began a session meanwhile.
        book.note(&key, &tally("old", 7, 3), Duration::ZERO);
        let begun =
            |sessions: &mut ctx_session::store::Sessions| sessions.insert(&key, entry("new"));
        store.update(begun).unwrap();
        book.write().unwrap();
        assert_eq!((stored().input_tokens, stored().compaction_count), (None, None));
        book.note(&key, &tally("old", 7, 3), Duration::ZERO);
        book.note(&key, &tally("new", 1, 0), Duration::ZERO);
        book.write().unwrap();
        assert_eq!((stored().input_tokens, stored().compaction_count), (Some(1), None));
    }
}

//! The counters in `sessions.json`.

use std::collections::HashMap;
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
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
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
    fn take(&mut self, later: Self) {
        self.updated_at = self.updated_at.max(later.updated_at);
        self.usage.input = self.usage.input.saturating_add(later.usage.prompt());
        self.usage.output = self.usage.output.saturating_add(later.usage.output);
        let total = self.usage.total_tokens.unwrap_or_default();
        self.usage.total_tokens = Some(total.saturating_add(later.usage.total()));
        self.window = later.window.or(self.window);
        self.compactions = later.compactions;
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
    numbers: u64,
    written: Option<Duration>,
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
}

impl Book {
    pub(crate) fn new(home: Home) -> Self {
        Self { home, state: Mutex::default(), writing: Mutex::default() }
    }

    /// Takes note, and says whether it is time to write.
    pub(crate) fn note(&self, key: &SessionKey, tally: Tally, now: Duration) -> bool {
        let mut state = locked(&self.state);
        // What a flush and a compaction did must be known to whoever opens the session after a
        // crash: else the next cycle would do it twice, or not at all.
        let is_news = tally.flushed.is_some() || tally.compacted;
        state.tallies.entry(key.clone()).or_default().take(tally);
        let due = state.written.is_none_or(|written| now.saturating_sub(written) >= EVERY);
        if due || is_news {
            state.written = Some(now);
        }
        due || is_news
    }

    /// Puts a session that begins into the store. Those that begin at the same time are written
    /// together, by the first of them.
    ///
    /// # Errors
    ///
    /// As [`SessionStore::update`]. It is not there then.
    pub(crate) fn begin(
        &self,
        agent: &FileId,
        key: &SessionKey,
        entry: SessionEntry,
    ) -> Result<()> {
        let number = {
            let mut state = locked(&self.state);
            state.numbers += 1;
            let number = state.numbers;
            let (agent, key) = (agent.clone(), key.clone());
            state.beginning.push(Beginning { number, agent, key, entry });
            number
        };
        let _writing = locked(&self.writing);
        let take_mine = || {
            let mut state = locked(&self.state);
            let at = state.beginning.iter().position(|beginning| beginning.number == number)?;
            Some(state.beginning.remove(at))
        };
        if !locked(&self.state).beginning.iter().any(|beginning| beginning.number == number) {
            return Ok(());
        }
        let _ = self.write_all();
        // What failed may be another's fault.
        match take_mine() {
            None => Ok(()),
            Some(mine) => self.write_for(agent, &[mine], &[]),
        }
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
            if let Err(error) = self.write_for(&agent, &beginning, &tallies) {
                failed = Err(error);
                let mut state = locked(&self.state);
                state.beginning.extend(beginning);
                for (key, tally) in tallies {
                    let later = state.tallies.remove(&key);
                    let known = state.tallies.entry(key).or_insert(tally);
                    if let Some(later) = later {
                        known.take(later);
                    }
                }
            }
        }
        failed
    }

    fn write_for(
        &self,
        agent: &FileId,
        beginning: &[Beginning],
        tallies: &[(SessionKey, Tally)],
    ) -> Result<()> {
        SessionStore::at(self.home.sessions_file(agent)).update(|sessions| {
            for one in beginning {
                sessions.insert(&one.key, one.entry.clone())?;
            }
            for (key, tally) in tallies {
                let Some(entry) = sessions.get_mut(key) else { continue };
                let add = |known: &mut Option<u64>, more: u64| {
                    *known = Some(known.unwrap_or_default().saturating_add(more));
                };
                entry.updated_at = entry.updated_at.max(tally.updated_at);
                add(&mut entry.input_tokens, tally.usage.input);
                add(&mut entry.output_tokens, tally.usage.output);
                add(&mut entry.total_tokens, tally.usage.total_tokens.unwrap_or_default());
                entry.context_tokens = tally.window.or(entry.context_tokens);
                if tally.compactions > 0 {
                    entry.compaction_count = Some(tally.compactions);
                }
                if let Some((at, count)) = tally.flushed {
                    entry.memory_flush_at = Some(at);
                    entry.memory_flush_compaction_count = Some(count);
                }
            }
            Ok(())
        })
    }
}

impl Drop for Book {
    fn drop(&mut self) {
        // Nobody is left to hear of it; the transcripts are complete without.
        let _ = self.write();
    }
}

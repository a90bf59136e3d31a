//! Idle sessions: how many stay open, and how much of them stays in memory.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use ctx_core::Timestamp;
use ctx_session::key::SessionKey;

use super::Session;
use crate::sync::locked;

/// Maximum number of message tokens that all idle sessions keep in memory: about 400 MB.
const MAX_HELD_TOKENS: u64 = 64_000_000;

/// Maximum number of open sessions, even if the system allows more.
const MAX_OPEN: usize = 4_096;

/// Default maximum number of open sessions: a quarter of the process's open file limit. Each
/// session uses two files, its own and its lock.
pub(crate) fn max_open_sessions() -> usize {
    open_files().map_or(MAX_OPEN, |files| (files / 4).clamp(1, MAX_OPEN))
}

/// Maximum number of concurrent turns for the open file limit.
pub(crate) fn max_concurrent_turns() -> usize {
    open_files().map_or(usize::MAX, |files| (files / 8).max(1))
}

/// Returns the open file limit of the process; `None` if there is none or it is unknown.
#[cfg(unix)]
fn open_files() -> Option<usize> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current?;
    usize::try_from(limit).ok()
}

#[cfg(not(unix))]
fn open_files() -> Option<usize> {
    None
}

/// The idle sessions.
#[derive(Default)]
pub(super) struct IdleSessions {
    state: Mutex<IdleState>,
    /// Number of sessions that were taken out to be closed, and are not closed yet.
    closing: AtomicUsize,
}

#[derive(Default)]
struct IdleState {
    sessions: HashMap<SessionKey, IdleSession>,
    uses: u64,
}

struct IdleSession {
    session: Session,
    /// Sequence number of the last use: higher is later.
    used: u64,
}

impl IdleSessions {
    /// Takes a session out, to work on it.
    pub(super) fn take(&self, key: &SessionKey) -> Option<Session> {
        locked(&self.state).sessions.remove(key).map(|idle| idle.session)
    }

    /// Puts a session in. If the idle sessions and `elsewhere` exceed the memory limit, views are
    /// dropped; they are rebuilt from the file when needed.
    pub(super) fn put(&self, session: Session, elsewhere: u64) {
        let mut state = locked(&self.state);
        state.uses += 1;
        let used = state.uses;
        state.sessions.insert(session.key.clone(), IdleSession { session, used });
        state.drop_views(MAX_HELD_TOKENS.saturating_sub(elsewhere));
    }

    /// Takes out the least recently used sessions, to be [closed](Closing), if the total number
    /// `open` exceeds `most`.
    pub(super) fn excess(&self, open: usize, most: usize) -> Vec<Closing<'_>> {
        let mut state = locked(&self.state);
        let excess = open.saturating_sub(self.closing.load(Ordering::Relaxed) + most);
        let leaving: Vec<_> = (0..excess).map_while(|_| state.pop_oldest()).collect();
        self.closing.fetch_add(leaving.len(), Ordering::Relaxed);
        leaving.into_iter().map(|session| Closing { session: Some(session), idle: self }).collect()
    }

    /// Returns the sessions without activity since `oldest`.
    pub(super) fn unused_since(&self, oldest: Timestamp) -> Vec<SessionKey> {
        let state = locked(&self.state);
        let unused = state.sessions.iter().filter(|(_, idle)| idle.session.newest < oldest);
        unused.map(|(key, _)| key.clone()).collect()
    }
}

impl IdleState {
    fn pop_oldest(&mut self) -> Option<Session> {
        let oldest = self.sessions.iter().min_by_key(|(_, idle)| idle.used);
        let key = oldest.map(|(key, _)| key.clone())?;
        self.sessions.remove(&key).map(|idle| idle.session)
    }

    /// Drops views, least recently used first, until sessions keep at most `most` tokens.
    fn drop_views(&mut self, most: u64) {
        let sessions = self.sessions.values();
        let mut held: u64 = sessions.map(|idle| idle.session.held()).sum();
        while held > most {
            let mut with_view: Vec<_> =
                self.sessions.values_mut().filter(|w| w.session.view.is_some()).collect();
            let Some(oldest) = with_view.iter_mut().min_by_key(|idle| idle.used) else {
                return;
            };
            held = held.saturating_sub(oldest.session.held());
            oldest.session.view = None;
        }
    }
}

/// A session to be closed.
pub(super) struct Closing<'a> {
    session: Option<Session>,
    idle: &'a IdleSessions,
}

impl Closing<'_> {
    /// Disposes of its engine and returns the session. The caller drops it on a blocking thread,
    /// as that closes the file.
    pub(super) async fn dispose_engine(&mut self) -> Option<Session> {
        let session = self.session.take()?;
        session.dispose_engine().await;
        Some(session)
    }
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.idle.closing.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ctx_config::Config;
    use ctx_core::NoTools;
    use ctx_session::Home;
    use ctx_testkit::chat::{ScriptedChat, shared};

    use super::*;
    use crate::host::NoListener;
    use crate::runtime::Runtime;

    fn nth(n: usize) -> SessionKey {
        format!("agent:main:chat-{n}").parse().unwrap()
    }

    async fn with_four(most: usize) -> (tempfile::TempDir, Arc<ScriptedChat>, Runtime) {
        let dir = tempfile::tempdir().unwrap();
        let (model, shared) = shared(ScriptedChat::new("script/a", 100_000));
        let builder = Runtime::builder(Home::at(dir.path()), Config::parse("{}").unwrap());
        let runtime = builder.model(shared).open_sessions(most).build().unwrap();
        for n in 0..4 {
            runtime.turn(&nth(n), "hello", &NoTools, &mut NoListener).await.unwrap();
        }
        (dir, model, runtime)
    }

    fn of_all<T>(runtime: &Runtime, what: impl Fn(&Session) -> T) -> Vec<Option<T>> {
        let state = locked(&runtime.inner.sessions.idle.state);
        (0..4).map(|n| state.sessions.get(&nth(n)).map(|found| what(&found.session))).collect()
    }

    #[tokio::test]
    async fn least_recently_used_views_are_dropped_and_rebuilt_from_the_file() {
        let (_dir, model, runtime) = with_four(100).await;
        let one = of_all(&runtime, Session::held)[3].unwrap();
        assert!(one > 0);
        locked(&runtime.inner.sessions.idle.state).drop_views(2 * one);
        let has_view = of_all(&runtime, |session| session.view.is_some());
        assert_eq!(has_view, [false, false, true, true].map(Some));
        runtime.turn(&nth(0), "again", &NoTools, &mut NoListener).await.unwrap();
        assert_eq!(model.requests().last().unwrap().messages.len(), 3);
    }

    #[tokio::test]
    async fn least_recently_used_sessions_are_closed_and_reopened() {
        let (dir, model, runtime) = with_four(2).await;
        assert_eq!(of_all(&runtime, |_| ()), [None, None, Some(()), Some(())]);
        assert_eq!(runtime.inner.sessions.leases.len(), 2);
        // Another runtime can open a closed session.
        let (_, other) = shared(ScriptedChat::new("script/b", 100_000));
        let builder = Runtime::builder(Home::at(dir.path()), Config::parse("{}").unwrap());
        let other = builder.model(other).build().unwrap();
        other.turn(&nth(1), "from elsewhere", &NoTools, &mut NoListener).await.unwrap();
        other.close(&nth(1)).await.unwrap();
        for (n, messages) in [(0, 3), (1, 5), (2, 3)] {
            runtime.turn(&nth(n), "again", &NoTools, &mut NoListener).await.unwrap();
            assert_eq!(model.requests().last().unwrap().messages.len(), messages, "{n}");
        }
        assert_eq!(of_all(&runtime, |_| ()), [None, Some(()), Some(()), None]);
    }
}

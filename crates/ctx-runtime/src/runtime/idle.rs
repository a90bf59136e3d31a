//! Sessions that nobody is working on: how many stay open, and how much of them stays in memory.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use ctx_core::Timestamp;
use ctx_session::key::SessionKey;

use crate::session::{Session, locked};

/// How many tokens of messages sessions that are idle keep in memory, all together: some 400 MB.
const MOST_HELD: u64 = 64_000_000;

/// How many sessions are open at most, where the system would allow more.
const MOST_OPEN: usize = 4_096;

/// How many sessions are open at most by default: a quarter of the files that the process may have
/// open. Each holds two, its own and its lock.
pub(super) fn most_open() -> usize {
    open_files().map_or(MOST_OPEN, |files| (files / 4).clamp(1, MOST_OPEN))
}

/// How many turns may run at once for the sake of the files that each opens.
pub(super) fn most_at_once() -> usize {
    open_files().map_or(usize::MAX, |files| (files / 8).max(1))
}

/// How many files the process may have open; `None` where there is no limit, or no telling.
#[cfg(unix)]
fn open_files() -> Option<usize> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current?;
    usize::try_from(limit).ok()
}

#[cfg(not(unix))]
fn open_files() -> Option<usize> {
    None
}

/// The sessions.
#[derive(Default)]
pub(super) struct Idle {
    kept: Mutex<Kept>,
    /// Sessions that were taken out to be closed, and are not yet.
    closing: AtomicUsize,
}

#[derive(Default)]
struct Kept {
    sessions: HashMap<SessionKey, Waiting>,
    uses: u64,
}

struct Waiting {
    session: Session,
    /// The higher the later.
    used: u64,
}

impl Idle {
    /// Takes a session out, to work on it.
    pub(super) fn take(&self, key: &SessionKey) -> Option<Session> {
        locked(&self.kept).sessions.remove(key).map(|waiting| waiting.session)
    }

    /// Puts a session in. Beyond what may be in memory, `elsewhere` included, views are let go of: who
    /// needs one again makes it from the file.
    pub(super) fn keep(&self, session: Session, elsewhere: u64) {
        let mut kept = locked(&self.kept);
        kept.uses += 1;
        let used = kept.uses;
        kept.sessions.insert(session.key.clone(), Waiting { session, used });
        kept.forget_views(MOST_HELD.saturating_sub(elsewhere));
    }

    /// Takes out those used least lately, to be [closed](Closing), where `open` sessions all together
    /// are more than `most`.
    pub(super) fn excess(&self, open: usize, most: usize) -> Vec<Closing<'_>> {
        let mut kept = locked(&self.kept);
        let excess = open.saturating_sub(self.closing.load(Ordering::Relaxed) + most);
        let leaving: Vec<_> = (0..excess).map_while(|_| kept.pop_oldest()).collect();
        self.closing.fetch_add(leaving.len(), Ordering::Relaxed);
        leaving.into_iter().map(|session| Closing { session: Some(session), idle: self }).collect()
    }

    /// Those in which nothing happened since.
    pub(super) fn unused_since(&self, oldest: Timestamp) -> Vec<SessionKey> {
        let kept = locked(&self.kept);
        let unused = kept.sessions.iter().filter(|(_, waiting)| waiting.session.newest < oldest);
        unused.map(|(key, _)| key.clone()).collect()
    }
}

impl Kept {
    fn pop_oldest(&mut self) -> Option<Session> {
        let oldest = self.sessions.iter().min_by_key(|(_, waiting)| waiting.used);
        let key = oldest.map(|(key, _)| key.clone())?;
        self.sessions.remove(&key).map(|waiting| waiting.session)
    }

    /// Takes views out of sessions, those that were not used for longest first, until they hold no
    /// more than that.
    fn forget_views(&mut self, most: u64) {
        let sessions = self.sessions.values();
        let mut held: u64 = sessions.map(|waiting| waiting.session.held()).sum();
        while held > most {
            let mut with_view: Vec<_> =
                self.sessions.values_mut().filter(|w| w.session.view.is_some()).collect();
            let Some(oldest) = with_view.iter_mut().min_by_key(|waiting| waiting.used) else {
                return;
            };
            held = held.saturating_sub(oldest.session.held());
            oldest.session.view = None;
        }
    }
}

/// A session that is to be closed.
pub(super) struct Closing<'a> {
    session: Option<Session>,
    idle: &'a Idle,
}

impl Closing<'_> {
    /// Lets go of its engine, and hands its file out, to be closed where that may wait.
    pub(super) async fn let_go(&mut self) -> Option<Session> {
        let session = self.session.take()?;
        session.let_go_of_engine().await;
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

    use ctx_core::NoTools;
    use ctx_engine_registry::Config;
    use ctx_session::paths::Home;
    use ctx_testkit::chat::{ScriptedChat, shared};

    use super::*;
    use crate::runtime::{Deaf, Runtime};

    fn nth(n: usize) -> SessionKey {
        format!("agent:main:chat-{n}").parse().unwrap()
    }

    async fn with_four(most: usize) -> (tempfile::TempDir, Arc<ScriptedChat>, Runtime) {
        let dir = tempfile::tempdir().unwrap();
        let (model, shared) = shared(ScriptedChat::new("script/a", 100_000));
        let builder = Runtime::builder(Home::at(dir.path()), Config::parse("{}").unwrap());
        let runtime = builder.model(shared).open_sessions(most).build().unwrap();
        for n in 0..4 {
            runtime.turn(&nth(n), "hello", &NoTools, &mut Deaf).await.unwrap();
        }
        (dir, model, runtime)
    }

    fn of_all<T>(runtime: &Runtime, what: impl Fn(&Session) -> T) -> Vec<Option<T>> {
        let kept = locked(&runtime.inner.idle.kept);
        (0..4).map(|n| kept.sessions.get(&nth(n)).map(|found| what(&found.session))).collect()
    }

    #[tokio::test]
    async fn views_of_sessions_unused_for_longest_are_let_go_of_and_made_again_from_the_file() {
        let (_dir, model, runtime) = with_four(100).await;
        let one = of_all(&runtime, Session::held)[3].unwrap();
        assert!(one > 0);
        locked(&runtime.inner.idle.kept).forget_views(2 * one);
        let has_view = of_all(&runtime, |session| session.view.is_some());
        assert_eq!(has_view, [false, false, true, true].map(Some));
        runtime.turn(&nth(0), "again", &NoTools, &mut Deaf).await.unwrap();
        assert_eq!(model.requests().last().unwrap().messages.len(), 3);
    }

    #[tokio::test]
    async fn sessions_unused_for_longest_are_closed_beyond_what_may_be_open_and_opened_again() {
        let (dir, model, runtime) = with_four(2).await;
        assert_eq!(of_all(&runtime, |_| ()), [None, None, Some(()), Some(())]);
        assert_eq!(runtime.inner.hands.len(), 2);
        // Whoever else wants one has it.
        let (_, other) = shared(ScriptedChat::new("script/b", 100_000));
        let builder = Runtime::builder(Home::at(dir.path()), Config::parse("{}").unwrap());
        let other = builder.model(other).build().unwrap();
        other.turn(&nth(1), "from elsewhere", &NoTools, &mut Deaf).await.unwrap();
        other.close(&nth(1)).await.unwrap();
        for (n, messages) in [(0, 3), (1, 5), (2, 3)] {
            runtime.turn(&nth(n), "again", &NoTools, &mut Deaf).await.unwrap();
            assert_eq!(model.requests().last().unwrap().messages.len(), messages, "{n}");
        }
        assert_eq!(of_all(&runtime, |_| ()), [None, Some(()), Some(()), None]);
    }
}

//! Lanes: one thing at a time in a session, and so many at a time in all.
//!
//! Whoever works on a session is in its lane. A turn that starts another (a tool that runs a
//! subagent, or asks for a compaction) waits inside its own lane for somebody else's, and two ways
//! to wait for ever come with that. Both are closed here:
//!
//! - *The global limit.* Who waits for a session holds no place of the global limit: a turn that
//!   waits for another gives its place back until it goes on. So places are held by those who work,
//!   and they come free.
//! - *Sessions in a ring.* Who waits for a session, and in which sessions he is himself, is known.
//!   An entry that would close a ring is refused at once, with the ring; the plainest one is a
//!   session that waits for itself.
//!
//! What a turn started is known by the task it runs in. A tool that hands work to a task of its own
//! wraps it in [`Lanes::carry`].

mod waits;

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ctx_core::{Error, ErrorKind, Result};
use ctx_session::key::SessionKey;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use waits::{Visit, Waits};

/// How many turns run at once unless told otherwise.
pub const GLOBAL_LIMIT: usize = 64;

/// Why waiting for a semaphore cannot fail.
const NEVER_CLOSED: &str = "nobody closes the semaphores of lanes";

/// The lanes of a runtime. Clones are the same lanes.
#[derive(Clone, Debug)]
pub struct Lanes {
    global: Arc<Semaphore>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    sessions: HashMap<SessionKey, Slot>,
    waits: Waits,
}

/// One session's lane, for as long as somebody is in it or waits for it.
#[derive(Debug)]
struct Slot {
    lane: Arc<Semaphore>,
    users: usize,
}

/// The visit that the current task is part of.
#[derive(Clone)]
struct Inside {
    visit: Visit,
    place: Arc<Place>,
}

/// A place of the global limit, which is given back while its holder waits for another session.
struct Place {
    global: Arc<Semaphore>,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    permit: Option<OwnedSemaphorePermit>,
    /// How many visits this one waits for, or has under way.
    away: usize,
}

tokio::task_local! {
    static INSIDE: Inside;
}

impl Default for Lanes {
    fn default() -> Self {
        Self::new(GLOBAL_LIMIT)
    }
}

impl Lanes {
    /// Lanes of which `limit` are worked in at once, at least one.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        let global = Arc::new(Semaphore::new(limit.clamp(1, Semaphore::MAX_PERMITS)));
        Self { global, state: Arc::default() }
    }

    /// Does `work` in the lane of a session, after everything that came before it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Conflict`] if the session's lane waits for the caller, however many sessions are
    /// between; else those of `work`.
    pub async fn run<T>(
        &self,
        key: SessionKey,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let outer = INSIDE.try_with(Inside::clone).ok();
        let entry = self.announce(key, outer.as_ref())?;
        let away = outer.as_ref().map(|outer| outer.place.leave());
        let done = entry.work(&self.global, work).await;
        // Who waits for a place again holds nobody up in the lane that he has left.
        drop(entry);
        if let Some(away) = away {
            away.come_back().await;
        }
        done
    }

    /// Takes the caller's lanes along into a task of its own: `tokio::spawn(Lanes::carry(work))`.
    pub fn carry<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
        let inside = INSIDE.try_with(Inside::clone).ok();
        async move {
            match inside {
                Some(inside) => INSIDE.scope(inside, work).await,
                None => work.await,
            }
        }
    }

    /// The sessions that are being worked in or waited for.
    #[must_use]
    pub fn busy(&self) -> Vec<SessionKey> {
        locked(&self.state).sessions.keys().cloned().collect()
    }

    fn announce(&self, key: SessionKey, outer: Option<&Inside>) -> Result<Entry> {
        let mut state = locked(&self.state);
        let visit = state.waits.wait(&key, outer.map(|outer| outer.visit)).map_err(|ring| {
            let ring: Vec<_> = ring.iter().map(ToString::to_string).collect();
            Error::new(ErrorKind::Conflict, "the session waits for this very call")
                .with("session", &key)
                .with("who waits for whom", ring.join(" -> "))
                .hint("let the call end first, or work in another session")
        })?;
        let slot = state
            .sessions
            .entry(key.clone())
            .or_insert_with(|| Slot { lane: Arc::new(Semaphore::new(1)), users: 0 });
        slot.users += 1;
        let lane = slot.lane.clone();
        Ok(Entry { key, visit, lane, state: self.state.clone() })
    }
}

/// Somebody who waits for a lane, and then is in it.
struct Entry {
    key: SessionKey,
    visit: Visit,
    lane: Arc<Semaphore>,
    state: Arc<Mutex<State>>,
}

impl Entry {
    async fn work<T>(
        &self,
        global: &Arc<Semaphore>,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let _lane = self.lane.acquire().await.expect(NEVER_CLOSED);
        locked(&self.state).waits.entered(self.visit);
        let permit = global.clone().acquire_owned().await.expect(NEVER_CLOSED);
        let held = Held { permit: Some(permit), away: 0 };
        let place = Arc::new(Place { global: global.clone(), held: held.into() });
        INSIDE.scope(Inside { visit: self.visit, place }, work).await
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut state = locked(&self.state);
        state.waits.left(self.visit);
        if let Some(slot) = state.sessions.get_mut(&self.key) {
            slot.users -= 1;
            if slot.users == 0 {
                state.sessions.remove(&self.key);
            }
        }
    }
}

impl Place {
    /// Gives the place back, once for all visits that start from it at the same time.
    fn leave(self: &Arc<Self>) -> Away {
        let mut held = locked(&self.held);
        held.away += 1;
        held.permit = None;
        Away { place: self.clone() }
    }
}

/// A place that was given back.
struct Away {
    place: Arc<Place>,
}

impl Away {
    /// Waits for a place again, which the last of several visits does.
    async fn come_back(self) {
        let place = self.place.clone();
        drop(self);
        let is_missing = |held: &Held| held.away == 0 && held.permit.is_none();
        if !is_missing(&locked(&place.held)) {
            return;
        }
        let permit = place.global.clone().acquire_owned().await.expect(NEVER_CLOSED);
        let mut held = locked(&place.held);
        if is_missing(&held) {
            held.permit = Some(permit);
        }
    }
}

impl Drop for Away {
    fn drop(&mut self) {
        locked(&self.place.held).away -= 1;
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;

//! Lanes: one task at a time in each session, and a limit on all sessions together.
//!
//! All work on a session runs in its lane. A turn that starts another turn (a tool that runs a
//! subagent, or requests a compaction) waits inside its own lane for another lane. This can cause
//! two kinds of deadlock, and both are prevented here:
//!
//! - *The global limit.* A turn that waits for another session releases its permit of the global
//!   limit until it resumes. So only running work has permits, and they become free.
//! - *Cycles of sessions.* The lanes know which session each visit waits for and which lanes it is
//!   in. An entry that would close a cycle fails at once, and the error lists the cycle. The
//!   simplest cycle is a session that waits for itself.
//!
//! A visit is identified by the task it runs in. A tool that spawns its own task wraps the work in
//! [`Lanes::carry`].

mod waits;

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex};

use ctx_core::{Error, ErrorKind, Result};
use ctx_session::key::SessionKey;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::sync::locked;
use waits::{Visit, Waits};

/// Default maximum number of turns that run at once.
pub(crate) const GLOBAL_LIMIT: usize = 64;

/// Why waiting for a semaphore cannot fail.
const NEVER_CLOSED: &str = "the semaphores of lanes are never closed";

/// The lanes of a runtime. Clones share the same lanes.
#[derive(Clone, Debug)]
pub struct Lanes {
    global: Arc<Semaphore>,
    state: Arc<Mutex<LaneTable>>,
}

#[derive(Debug, Default)]
struct LaneTable {
    sessions: HashMap<SessionKey, Lane>,
    waits: Waits,
}

/// The lane of one session. It exists while it is used or waited for.
#[derive(Debug)]
struct Lane {
    lane: Arc<Semaphore>,
    users: usize,
}

/// The visit that the current task belongs to.
#[derive(Clone)]
struct CurrentVisit {
    visit: Visit,
    slot: Arc<GlobalSlot>,
}

/// A permit of the global limit, released while its visit waits for another session.
struct GlobalSlot {
    global: Arc<Semaphore>,
    held: Mutex<SlotState>,
}

#[derive(Default)]
struct SlotState {
    permit: Option<OwnedSemaphorePermit>,
    /// Number of visits that this one waits for or runs.
    away: usize,
}

tokio::task_local! {
    static CURRENT: CurrentVisit;
}

impl Default for Lanes {
    fn default() -> Self {
        Self::new(GLOBAL_LIMIT)
    }
}

impl Lanes {
    /// Creates lanes. At most `limit` of them (at least one) are active at once.
    pub fn new(limit: usize) -> Self {
        let global = Arc::new(Semaphore::new(limit.clamp(1, Semaphore::MAX_PERMITS)));
        Self { global, state: Arc::default() }
    }

    /// Runs `work` in the lane of a session, after all earlier work.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Conflict`] if the session's lane waits for the caller, directly or through
    /// other sessions; otherwise the errors of `work`.
    pub async fn run<T>(
        &self,
        key: SessionKey,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let outer = CURRENT.try_with(CurrentVisit::clone).ok();
        let entry = self.enter(key, outer.as_ref())?;
        let away = outer.as_ref().map(|outer| outer.slot.release());
        let done = entry.work(&self.global, work).await;
        // A visit that waits for its permit again must not block the lane that it left.
        drop(entry);
        if let Some(away) = away {
            away.reacquire().await;
        }
        done
    }

    /// Makes a spawned task part of the caller's visit: `tokio::spawn(Lanes::carry(work))`.
    pub fn carry<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
        let inside = CURRENT.try_with(CurrentVisit::clone).ok();
        async move {
            match inside {
                Some(inside) => CURRENT.scope(inside, work).await,
                None => work.await,
            }
        }
    }

    /// Returns the sessions with running or waiting work.
    pub fn busy(&self) -> Vec<SessionKey> {
        locked(&self.state).sessions.keys().cloned().collect()
    }

    fn enter(&self, key: SessionKey, outer: Option<&CurrentVisit>) -> Result<LaneEntry> {
        let mut state = locked(&self.state);
        let visit = state.waits.wait(&key, outer.map(|outer| outer.visit)).map_err(|cycle| {
            let cycle: Vec<_> = cycle.iter().map(ToString::to_string).collect();
            Error::new(ErrorKind::Conflict, "deadlock: the session waits for this call")
                .with("session", &key)
                .with("cycle", cycle.join(" -> "))
                .hint("let the call end first, or use another session")
        })?;
        let of_key = state
            .sessions
            .entry(key.clone())
            .or_insert_with(|| Lane { lane: Arc::new(Semaphore::new(1)), users: 0 });
        of_key.users += 1;
        let lane = of_key.lane.clone();
        Ok(LaneEntry { key, visit, lane, state: self.state.clone() })
    }
}

/// A visit that waits for a lane, then is in it.
struct LaneEntry {
    key: SessionKey,
    visit: Visit,
    lane: Arc<Semaphore>,
    state: Arc<Mutex<LaneTable>>,
}

impl LaneEntry {
    async fn work<T>(
        &self,
        global: &Arc<Semaphore>,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let _lane = self.lane.acquire().await.expect(NEVER_CLOSED);
        locked(&self.state).waits.entered(self.visit);
        let permit = global.clone().acquire_owned().await.expect(NEVER_CLOSED);
        let held = SlotState { permit: Some(permit), away: 0 };
        let slot = Arc::new(GlobalSlot { global: global.clone(), held: held.into() });
        CURRENT.scope(CurrentVisit { visit: self.visit, slot }, work).await
    }
}

impl Drop for LaneEntry {
    fn drop(&mut self) {
        let mut state = locked(&self.state);
        state.waits.left(self.visit);
        if let Some(of_key) = state.sessions.get_mut(&self.key) {
            of_key.users -= 1;
            if of_key.users == 0 {
                state.sessions.remove(&self.key);
            }
        }
    }
}

impl GlobalSlot {
    /// Releases the permit, once for all concurrent visits started from this one.
    fn release(self: &Arc<Self>) -> ReleasedSlot {
        let mut held = locked(&self.held);
        held.away += 1;
        held.permit = None;
        ReleasedSlot { slot: self.clone() }
    }
}

/// A permit that was released.
struct ReleasedSlot {
    slot: Arc<GlobalSlot>,
}

impl ReleasedSlot {
    /// Acquires a permit again. Only the last of several visits does so.
    async fn reacquire(self) {
        let slot = self.slot.clone();
        drop(self);
        let is_missing = |held: &SlotState| held.away == 0 && held.permit.is_none();
        if !is_missing(&locked(&slot.held)) {
            return;
        }
        let permit = slot.global.clone().acquire_owned().await.expect(NEVER_CLOSED);
        let mut held = locked(&slot.held);
        if is_missing(&held) {
            held.permit = Some(permit);
        }
    }
}

impl Drop for ReleasedSlot {
    fn drop(&mut self) {
        locked(&self.slot.held).away -= 1;
    }
}

#[cfg(test)]
mod tests;

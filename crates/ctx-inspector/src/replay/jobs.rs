//! Runs replays, and caches their results.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ctx_core::{Error, Result};
use ctx_session::Overlay;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};

use super::listing::ListedSession;
use super::session::ReplayedSession;
use super::setup::ReplaySettings;
use super::stamp_of;
use crate::shape::{Progress, SessionHead, SourceKind};
use crate::source::SourceState;

/// Maximum number of cached sessions; the least recently used is evicted.
const CACHED: usize = 8;

/// The number of recent sessions that are replayed before they are opened, so that the list shows
/// their requests, and the maximum size of each file.
const WARM: usize = 4;
const WARM_BYTES: u64 = 8_000_000;

/// Maximum number of concurrent replays.
const AT_ONCE: usize = 2;

/// The stamps of a file and of ctx's files beside it.
type Stamp = (Option<u64>, Option<u64>);

pub(super) struct Jobs {
    with: Arc<ReplaySettings>,
    slots: Arc<Mutex<ReplaySlots>>,
    permits: Arc<Semaphore>,
}

#[derive(Default)]
struct ReplaySlots {
    of: HashMap<PathBuf, ReplaySlot>,
    clock: u64,
    /// The number of finished replays.
    ended: u64,
}

/// The replays of one transcript.
#[derive(Default)]
struct ReplaySlot {
    /// The stamp at the start of the newest replay.
    stamp: Stamp,
    used: u64,
    /// The number of finished replays.
    generation: u64,
    running: Option<watch::Receiver<Progress>>,
    done: Option<Result<Arc<ReplayedSession>, Arc<Error>>>,
}

impl Jobs {
    pub(super) fn new(with: ReplaySettings) -> Self {
        let (slots, permits) = (Arc::default(), Arc::new(Semaphore::new(AT_ONCE)));
        Self { with: Arc::new(with), slots, permits }
    }

    /// Returns the last finished replay of a session, even while a newer one runs. Without one,
    /// returns the progress of the first replay. Starts a replay if the files changed.
    pub(super) fn open(&self, listed: &ListedSession) -> Result<SourceState> {
        let now = self.stamp(&listed.path);
        let mut slots = self.slots();
        slots.clock += 1;
        let clock = slots.clock;
        let slot = slots.of.entry(listed.path.clone()).or_default();
        slot.used = clock;
        let is_old = slot.done.is_none() || slot.stamp != now;
        if slot.running.is_none() && is_old {
            slot.stamp = now;
            slot.running = Some(self.start(listed.clone()));
        }
        let state = match (&slot.done, &slot.running) {
            (Some(Ok(replayed)), _) => Ok(SourceState::Open(replayed.clone())),
            (_, Some(running)) => Ok(SourceState::Working(running.clone())),
            (Some(Err(error)), None) => Err(error.reworded(error.to_string())),
            (None, None) => Ok(SourceState::Working(watch::channel(Progress::default()).1)),
        };
        slots.evict();
        state
    }

    /// Replays the most recently used sessions, so that they are ready when they are opened.
    pub(super) fn warm(&self, listed: &[ListedSession]) {
        let mut newest: Vec<&ListedSession> = listed.iter().collect();
        newest.sort_by_key(|listed| std::cmp::Reverse(listed.head.last_at));
        for listed in newest.into_iter().take(WARM) {
            let is_known = self.slots().of.contains_key(&listed.path);
            if !is_known && listed.head.bytes.is_some_and(|bytes| bytes <= WARM_BYTES) {
                // Errors are reported when the session is opened.
                let _ = self.open(listed);
            }
        }
    }

    /// Discards the cached replay of a session.
    pub(super) fn forget(&self, path: &Path) {
        if let Some(slot) = self.slots().of.get_mut(path) {
            slot.done = None;
        }
    }

    /// Returns the number of finished replays.
    pub(super) fn ended(&self) -> u64 {
        self.slots().ended
    }

    pub(super) fn generation(&self, path: &Path) -> u64 {
        self.slots().of.get(path).map_or(0, |slot| slot.generation)
    }

    /// Adds the results of a replay to a row of the list.
    pub(super) fn completed(&self, head: SessionHead, path: &Path) -> SessionHead {
        let slots = self.slots();
        match slots.of.get(path).and_then(|slot| slot.done.as_ref()) {
            Some(Ok(replayed)) => {
                // The provider's count is more accurate than a replay's estimate.
                let reported = head.sent_tokens.filter(|_| head.source == SourceKind::File);
                let head = replayed.head(head);
                SessionHead { sent_tokens: reported.or(head.sent_tokens), ..head }
            }
            _ => head,
        }
    }

    fn slots(&self) -> MutexGuard<'_, ReplaySlots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stamp(&self, path: &Path) -> Stamp {
        let beside = Overlay::of(&self.with.home, path).ok();
        (stamp_of(path), beside.and_then(|beside| stamp_of(&beside.path)))
    }

    /// Starts a replay on a blocking thread.
    fn start(&self, listed: ListedSession) -> watch::Receiver<Progress> {
        let (sender, progress) = watch::channel(Progress::default());
        let (with, slots, permits) = (self.with.clone(), self.slots.clone(), self.permits.clone());
        let handle = Handle::current();
        tokio::task::spawn_blocking(move || {
            let _permit = handle.block_on(permits.acquire());
            let done = ReplayedSession::read(&with, &listed, &handle, &sender).map_err(Arc::new);
            let mut slots = slots.lock().unwrap_or_else(PoisonError::into_inner);
            slots.ended += 1;
            if let Some(slot) = slots.of.get_mut(&listed.path) {
                slot.done = Some(done.map(Arc::new));
                slot.generation += 1;
                slot.running = None;
            }
            drop(slots);
            sender.send_modify(|progress| progress.finished = true);
        });
        progress
    }
}

impl ReplaySlots {
    /// Removes the least recently used sessions beyond [`CACHED`].
    fn evict(&mut self) {
        while self.of.len() > CACHED {
            let idle = self.of.iter().filter(|(_, slot)| slot.running.is_none());
            let oldest = idle.min_by_key(|(_, slot)| slot.used).map(|(path, _)| path.clone());
            let Some(oldest) = oldest else { return };
            self.of.remove(&oldest);
        }
    }
}

//! Replays that run, and those that are kept.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ctx_core::{Error, Result};
use ctx_session::overlay::Overlay;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};

use super::listed::Listed;
use super::replayed::Replayed;
use super::setup::With;
use super::stamp_of;
use crate::inspect::shape::{Progress, SessionHead, SourceKind};
use crate::inspect::source::State;

/// So many sessions are kept; the one that was not looked at for longest goes first.
const KEPT: usize = 8;

/// So many of the sessions used last are replayed before anybody opens them, unless their files are
/// larger than this: the list then tells of their requests.
const BEFORE: usize = 4;
const BEFORE_BYTES: u64 = 8_000_000;

/// So many are replayed at once.
const AT_ONCE: usize = 2;

/// A file and what ctx keeps beside it, as they are.
type Stamp = (Option<u64>, Option<u64>);

pub(super) struct Jobs {
    with: Arc<With>,
    slots: Arc<Mutex<Slots>>,
    permits: Arc<Semaphore>,
}

#[derive(Default)]
struct Slots {
    of: HashMap<PathBuf, Slot>,
    clock: u64,
    /// Counts the replays that ended.
    ended: u64,
}

/// One transcript.
struct Slot {
    /// As it was when the newest replay began.
    stamp: Stamp,
    used: u64,
    /// Counts the replays that ended.
    generation: u64,
    running: Option<watch::Receiver<Progress>>,
    done: Option<Result<Arc<Replayed>, Arc<Error>>>,
}

impl Jobs {
    pub(super) fn new(with: With) -> Self {
        let (slots, permits) = (Arc::default(), Arc::new(Semaphore::new(AT_ONCE)));
        Self { with: Arc::new(with), slots, permits }
    }

    /// A session as it was last replayed, while a newer replay runs too; else how far that is.
    pub(super) fn open(&self, listed: &Listed) -> Result<State> {
        let now = self.stamp(&listed.path);
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.clock += 1;
        let clock = slots.clock;
        let slot = slots.of.entry(listed.path.clone()).or_insert_with(|| Slot {
            stamp: (None, None),
            used: 0,
            generation: 0,
            running: None,
            done: None,
        });
        slot.used = clock;
        let is_old = slot.done.is_none() || slot.stamp != now;
        if slot.running.is_none() && is_old {
            slot.stamp = now;
            slot.running = Some(self.start(listed.clone()));
        }
        let state = match (&slot.done, &slot.running) {
            (Some(Ok(replayed)), _) => Ok(State::Open(replayed.clone())),
            (_, Some(running)) => Ok(State::Working(running.clone())),
            (Some(Err(error)), None) => Err(said_again(error)),
            (None, None) => Ok(State::Working(watch::channel(Progress::default()).1)),
        };
        slots.make_room();
        state
    }

    /// Has the sessions that were used last replayed.
    pub(super) fn warm(&self, listed: &[Listed]) {
        let mut newest: Vec<&Listed> = listed.iter().collect();
        newest.sort_by_key(|listed| std::cmp::Reverse(listed.head.last_at));
        for listed in newest.into_iter().take(BEFORE) {
            let is_known = {
                let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
                slots.of.contains_key(&listed.path)
            };
            if !is_known && listed.head.bytes.is_some_and(|bytes| bytes <= BEFORE_BYTES) {
                // What is wrong with it is told when it is opened.
                let _ = self.open(listed);
            }
        }
    }

    /// Lets go of what a session was.
    pub(super) fn forget(&self, path: &Path) {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = slots.of.get_mut(path) {
            slot.done = None;
        }
    }

    /// Counts the replays that ended.
    pub(super) fn ended(&self) -> u64 {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.ended
    }

    pub(super) fn generation(&self, path: &Path) -> u64 {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.of.get(path).map_or(0, |slot| slot.generation)
    }

    /// A head of the list, with what a replay found.
    pub(super) fn completed(&self, head: SessionHead, path: &Path) -> SessionHead {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        match slots.of.get(path).and_then(|slot| slot.done.as_ref()) {
            Some(Ok(replayed)) => {
                // What the provider reported is truer than what a replay measures.
                let reported = head.sent_tokens.filter(|_| head.source == SourceKind::File);
                let head = replayed.head(head);
                SessionHead { sent_tokens: reported.or(head.sent_tokens), ..head }
            }
            _ => head,
        }
    }

    fn stamp(&self, path: &Path) -> Stamp {
        let beside = Overlay::of(&self.with.home, path).ok();
        (stamp_of(path), beside.and_then(|beside| stamp_of(beside.path())))
    }

    /// Replays in a thread that may block.
    fn start(&self, listed: Listed) -> watch::Receiver<Progress> {
        let (tell, progress) = watch::channel(Progress::default());
        let (with, slots, permits) = (self.with.clone(), self.slots.clone(), self.permits.clone());
        let handle = Handle::current();
        tokio::task::spawn_blocking(move || {
            let _permit = handle.block_on(permits.acquire());
            let done = Replayed::read(&with, &listed, &handle, &tell).map_err(Arc::new);
            let mut slots = slots.lock().unwrap_or_else(PoisonError::into_inner);
            slots.ended += 1;
            if let Some(slot) = slots.of.get_mut(&listed.path) {
                slot.done = Some(done.map(Arc::new));
                slot.generation += 1;
                slot.running = None;
            }
            drop(slots);
            tell.send_modify(|progress| progress.finished = true);
        });
        progress
    }
}

impl Slots {
    fn make_room(&mut self) {
        while self.of.len() > KEPT {
            let idle = self.of.iter().filter(|(_, slot)| slot.running.is_none());
            let oldest = idle.min_by_key(|(_, slot)| slot.used).map(|(path, _)| path.clone());
            let Some(oldest) = oldest else { return };
            self.of.remove(&oldest);
        }
    }
}

/// An error that is told to everybody who asks.
fn said_again(error: &Error) -> Error {
    let again = Error::new(error.kind(), error.to_string());
    match error.hint_text() {
        Some(hint) => again.hint(hint),
        None => again,
    }
}

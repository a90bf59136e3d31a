//! From the window to the archive: what waits, and who works on it.

use std::collections::VecDeque;
use std::sync::{Arc, MutexGuard, PoisonError};

use ctx_core::{Entry, Result, Timestamp};

use super::session::Shared;
use crate::facts::{Candidate, FactStore, Said};

/// Messages that wait to be archived. The view they left holds them as well.
#[derive(Default)]
pub(super) struct Queue {
    entries: VecDeque<Arc<Entry>>,
    has_worker: bool,
}

/// Whoever works on the queue. One that panics leaves the rest to another.
struct Worker<'a>(&'a Shared);

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.queue().has_worker = false;
        }
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has messages archived by a thread. Where none can be started they wait for the next one, or for
    /// who flushes.
    pub(super) fn push(self: &Arc<Self>, entries: &[Arc<Entry>]) {
        let mut queue = self.queue();
        queue.entries.extend(entries.iter().cloned());
        if queue.entries.is_empty() || queue.has_worker {
            return;
        }
        let shared = self.clone();
        let work = move || {
            let worker = Worker(&shared);
            if let Err(error) = shared.work() {
                shared
                    .memory
                    .inner
                    .warn(format!("what left the window is kept in memory for now: {error}"));
            }
            drop(worker);
        };
        let thread = std::thread::Builder::new().name("ctx-memory-archive".into());
        queue.has_worker = thread.spawn(work).is_ok();
    }

    /// Archives what waits, and returns when it is on disk. A message that cannot be read is told of,
    /// and stays in its transcript.
    ///
    /// # Errors
    ///
    /// Where the archive cannot be opened or written. What waits, waits on.
    pub(super) fn work(&self) -> Result<()> {
        let _working = self.working.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = self.memory.inner.ensure_open() {
            self.queue().has_worker = false;
            return Err(error);
        }
        let now = self.memory.settings().now();
        let mut learned = Vec::new();
        while let Some(entry) = self.next() {
            match self.take_in(&entry, now) {
                Ok(candidates) => learned.extend(candidates),
                Err(error) => {
                    self.memory.inner.warn(format!("a message is not archived: {error}"));
                }
            }
        }
        self.learn(learned);
        self.memory.flush()
    }

    /// The next message; who gets none is no longer at work.
    fn next(&self) -> Option<Arc<Entry>> {
        let mut queue = self.queue();
        let next = queue.entries.pop_front();
        queue.has_worker &= next.is_some();
        next
    }

    /// Archives a message, and gives the facts in it, where it is new.
    fn take_in(&self, entry: &Entry, now: Timestamp) -> Result<Vec<Candidate>> {
        let Some(segment) = self.maker.of_entry(entry, now)? else { return Ok(Vec::new()) };
        let facts = self.rules.as_ref().map(|rules| {
            let id = segment.id.to_string();
            rules.find(&[Said::of(&segment, &id)])
        });
        let segment = [segment];
        let added = self.memory.add(&segment)?;
        if added == 0 {
            return Ok(Vec::new());
        }
        if let (Some(study), [segment]) = (&self.study, &segment) {
            study.push(segment);
        }
        Ok(facts.unwrap_or_default())
    }

    fn learn(&self, candidates: Vec<Candidate>) {
        let Some(facts) = self.facts.as_ref().filter(|_| !candidates.is_empty()) else { return };
        let learned = FactStore::pen_of(facts).and_then(|pen| {
            let mut facts = facts.lock().unwrap_or_else(PoisonError::into_inner);
            facts.learn_under(&pen, candidates)
        });
        if let Err(error) = learned {
            self.memory.inner.warn(format!("facts were not learned: {error}"));
        }
    }
}

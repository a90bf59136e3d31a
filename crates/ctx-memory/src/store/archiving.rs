//! The queue of messages to archive, and its worker.

use std::collections::VecDeque;
use std::sync::{Arc, MutexGuard, PoisonError};

use ctx_core::{Entry, Result, Timestamp};

use super::session::Shared;
use crate::facts::{FactCandidate, FactStore, SourceMessage};

/// Messages waiting to be archived. The view already lists them as dropped.
#[derive(Default)]
pub(super) struct Queue {
    entries: VecDeque<Arc<Entry>>,
    has_worker: bool,
}

/// The worker of the queue. If it panics, the rest is left to the next worker.
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

    /// Queues messages to be archived by a thread. If no thread can be started, they wait for the
    /// next one or for a flush.
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
                    .warn(format!("messages that left the window are not archived yet: {error}"));
            }
            drop(worker);
        };
        let thread = std::thread::Builder::new().name("ctx-memory-archive".into());
        queue.has_worker = thread.spawn(work).is_ok();
    }

    /// Archives the queued messages and returns when they are on disk. A message that cannot be
    /// read is reported and stays in its transcript.
    ///
    /// # Errors
    ///
    /// If the archive cannot be opened or written. The messages keep waiting.
    pub(super) fn work(&self) -> Result<()> {
        let _working = self.working.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = self.memory.inner.ensure_open() {
            self.queue().has_worker = false;
            return Err(error);
        }
        let now = self.memory.settings().now();
        let mut learned = Vec::new();
        while let Some(entry) = self.next() {
            match self.insert(&entry, now) {
                Ok(candidates) => learned.extend(candidates),
                Err(error) => {
                    self.memory.inner.warn(format!("a message was not archived: {error}"));
                }
            }
        }
        self.learn(learned);
        self.memory.flush()
    }

    /// Returns the next message. A worker that gets `None` is done.
    fn next(&self) -> Option<Arc<Entry>> {
        let mut queue = self.queue();
        let next = queue.entries.pop_front();
        queue.has_worker &= next.is_some();
        next
    }

    /// Archives a message and returns its facts if it is new.
    fn insert(&self, entry: &Entry, now: Timestamp) -> Result<Vec<FactCandidate>> {
        let Some(segment) = self.maker.of_entry(entry, now)? else { return Ok(Vec::new()) };
        let facts = self.rules.as_ref().map(|rules| {
            let id = segment.id.to_string();
            rules.find(&[SourceMessage::of(&segment, &id)])
        });
        let segment = [segment];
        let added = self.memory.add(&segment)?;
        if added == 0 {
            return Ok(Vec::new());
        }
        if let (Some(extraction), [segment]) = (&self.extraction, &segment) {
            extraction.push(segment);
        }
        Ok(facts.unwrap_or_default())
    }

    fn learn(&self, candidates: Vec<FactCandidate>) {
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

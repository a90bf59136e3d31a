//! The queue of messages to archive, and its worker.

use std::collections::VecDeque;
use std::sync::{Arc, MutexGuard, PoisonError};

use ctx_core::{Entry, Result, Role, Timestamp};
use ctx_search::Segment;

use super::session::Shared;
use crate::facts::{FactStore, SourceMessage, find_facts};

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

    /// Archives the queued messages and returns when they are on disk.
    ///
    /// # Errors
    ///
    /// As [`Self::insert_queued`]; or if the archive cannot be synced.
    pub(super) fn work(&self) -> Result<()> {
        self.insert_queued()?;
        self.memory.flush()
    }

    /// Archives the queued messages: they can be found, and may not be on disk yet. A message that
    /// cannot be read is reported and stays in its transcript.
    ///
    /// # Errors
    ///
    /// If the archive cannot be opened. The messages keep waiting.
    pub(super) fn insert_queued(&self) -> Result<()> {
        let _working = self.working.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = self.memory.inner.ensure_open() {
            self.queue().has_worker = false;
            return Err(error);
        }
        let now = self.memory.settings().now();
        let mut archived = Vec::new();
        while let Some(entry) = self.next() {
            match self.insert(&entry, now) {
                Ok(segment) => archived.extend(segment),
                Err(error) => {
                    self.memory.inner.warn(format!("a message was not archived: {error}"));
                }
            }
        }
        self.learn(&archived);
        Ok(())
    }

    /// Returns the next message. A worker that gets `None` is done.
    fn next(&self) -> Option<Arc<Entry>> {
        let mut queue = self.queue();
        let next = queue.entries.pop_front();
        queue.has_worker &= next.is_some();
        next
    }

    /// Archives a message and returns its segment if it is new and may hold facts.
    fn insert(&self, entry: &Entry, now: Timestamp) -> Result<Option<Segment>> {
        let Some(segment) = self.maker.of_entry(entry, now)? else { return Ok(None) };
        if self.memory.add(std::slice::from_ref(&segment))? == 0 {
            return Ok(None);
        }
        if let Some(extraction) = &self.extraction {
            extraction.push(&segment);
        }
        let speaks = matches!(segment.role, Role::User | Role::Assistant | Role::Other(_));
        Ok(Some(segment).filter(|_| speaks && self.has_rules))
    }

    /// Learns the facts that rules find in new segments, read together: an answer chooses out of the
    /// options before it.
    fn learn(&self, segments: &[Segment]) {
        let Some(facts) = &self.facts else { return };
        let said: Vec<_> = segments.iter().map(SourceMessage::of).collect();
        let candidates = find_facts(&said);
        if candidates.is_empty() {
            return;
        }
        let learned = FactStore::pen_of(facts).and_then(|pen| {
            let mut facts = facts.lock().unwrap_or_else(PoisonError::into_inner);
            facts.learn_under(&pen, candidates)
        });
        if let Err(error) = learned {
            self.memory.inner.warn(format!("facts were not learned: {error}"));
        }
    }
}

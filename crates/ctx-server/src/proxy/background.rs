//! Compactions that are made while requests pass.
//!
//! ```text
//! request assembled, over a share of the threshold -> the engine compacts a copy of its view
//! a later request over the threshold, or without a cache -> the compaction is applied
//! ```
//!
//! No request waits for the model that writes the summary.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ctx_core::{CompactResult, EntryId};
use ctx_dialect::wire::Protocol;
use memchr::memmem;

use crate::hosted::{History, HostedSession};

/// Maximum number of compactions made in the background at once.
pub(super) const AT_ONCE: usize = 4;

/// The background compaction of a conversation.
#[derive(Debug, Default)]
pub(super) struct BackgroundCompaction(Mutex<Option<Job>>);

/// A compaction that was begun.
#[derive(Debug)]
pub(super) struct Job {
    /// The first message that the compaction in force keeps.
    base: Option<EntryId>,
    /// The messages at the beginning.
    entries: Vec<EntryId>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Running,
    Ready(Box<CompactResult>),
    /// It gained nothing: it is not repeated.
    Nothing,
}

impl Job {
    fn of(session: &HostedSession) -> Self {
        let items = session.history.items().iter();
        Self {
            base: base(session),
            entries: items.map(|item| item.entry.id().clone()).collect(),
            stage: Stage::Running,
        }
    }

    /// Whether the compaction is of the beginning of that session as it is now.
    fn is_of(&self, session: &HostedSession) -> bool {
        let Stage::Ready(result) = &self.stage else { return false };
        let first_kept = result.result.as_ref().map(|compacted| &compacted.first_kept_entry_id);
        first_kept.is_some_and(|id| self.base == base(session) && self.covers(&session.history, id))
    }

    /// Whether a history has the same messages before `first_kept`.
    fn covers(&self, history: &History, first_kept: &EntryId) -> bool {
        let Some(at) = history.position(first_kept) else { return false };
        let items = history.items()[..at].iter();
        self.entries.len() > at && items.map(|item| item.entry.id()).eq(&self.entries[..at])
    }
}

impl BackgroundCompaction {
    /// Begins a compaction of the session; returns whether there was none yet.
    pub(super) fn begin(&self, session: &HostedSession) -> bool {
        let mut job = self.lock();
        let is_new = match &*job {
            Some(Job { stage: Stage::Running, .. }) => false,
            Some(job) => job.base != base(session),
            None => true,
        };
        if is_new {
            *job = Some(Job::of(session));
        }
        is_new
    }

    /// Ends the compaction that was begun.
    pub(super) fn end(&self, result: Option<CompactResult>) {
        if let Some(job) = &mut *self.lock() {
            job.stage = match result.filter(|result| result.compacted) {
                Some(result) => Stage::Ready(Box::new(result)),
                None => Stage::Nothing,
            };
        }
    }

    /// Whether a compaction is ready for the session. One that no longer matches it is removed.
    pub(super) fn is_ready(&self, session: &HostedSession) -> bool {
        let mut job = self.lock();
        let is_ready = matches!(&*job, Some(Job { stage: Stage::Ready(_), .. }));
        if is_ready && !job.as_ref().is_some_and(|job| job.is_of(session)) {
            *job = None;
        }
        is_ready && job.is_some()
    }

    /// Returns the compaction that is ready.
    pub(super) fn take(&self) -> Option<CompactResult> {
        match self.lock().take()?.stage {
            Stage::Ready(result) => Some(*result),
            Stage::Running | Stage::Nothing => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Job>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn base(session: &HostedSession) -> Option<EntryId> {
    session.in_force.as_ref().map(|kept| kept.first_kept.clone())
}

/// Returns how long a provider keeps the cache of a request, at most: Anthropic five minutes, or one
/// hour if a mark in the request says so; OpenAI one hour, or a day if the request says so. Google
/// names no time for its implicit cache.
pub(super) fn cache_lifetime(protocol: Protocol, body: &str) -> Duration {
    const MINUTE: Duration = Duration::from_secs(60);
    let says = |text: &str| memmem::find(body.as_bytes(), text.as_bytes()).is_some();
    match protocol {
        Protocol::Messages if !says("\"1h\"") => 5 * MINUTE,
        Protocol::Chat | Protocol::Responses if says("\"24h\"") => 24 * 60 * MINUTE,
        _ => 60 * MINUTE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lifetime_of_a_cache_is_that_of_the_provider_or_the_request() {
        let minutes = |protocol, body| cache_lifetime(protocol, body).as_secs() / 60;
        assert_eq!(minutes(Protocol::Messages, "{}"), 5);
        assert_eq!(minutes(Protocol::Messages, r#"{"cache_control":{"ttl":"1h"}}"#), 60);
        assert_eq!(minutes(Protocol::Responses, r#"{"prompt_cache_retention": "24h"}"#), 1_440);
        assert_eq!(minutes(Protocol::Chat, "{}"), 60);
    }
}

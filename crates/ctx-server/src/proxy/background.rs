//! Compactions that are made while requests pass.
//!
//! ```text
//! request assembled, over a share of the threshold -> the engine compacts a copy of its view
//! a later request over the threshold, or without a cache, or if it pays -> it is applied
//! ```
//!
//! No request waits for the model that writes the summary.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ctx_core::{CompactResult, Compacted, EntryId, Tokens};
use ctx_dialect::wire::Protocol;
use ctx_hosted::{History, HostedSession};
use memchr::memmem;

/// Maximum number of compactions made in the background at once.
pub(super) const AT_ONCE: usize = 4;

/// The background compaction of a conversation.
#[derive(Debug, Default)]
pub(super) struct BackgroundCompaction(Mutex<Option<Job>>);

/// A compaction that was begun.
#[derive(Debug)]
struct Job {
    /// The first message that the compaction in force keeps.
    base: Option<EntryId>,
    /// The messages of the session.
    entries: Vec<EntryId>,
    /// The result: first with an extractive summary, then with that of a model.
    ready: Option<CompactResult>,
    is_running: bool,
}

impl Job {
    /// Returns the result if it is of the beginning of that session as it is now.
    fn fitting(&self, session: &HostedSession) -> Option<&Compacted> {
        let compacted = self.ready.as_ref()?.result.as_ref()?;
        let covers = || self.covers(&session.history, &compacted.first_kept_entry_id);
        (self.base == base(session) && covers()).then_some(compacted)
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
        let is_new = job.as_ref().is_none_or(|job| !job.is_running && job.base != base(session));
        if is_new {
            let items = session.history.items().iter();
            *job = Some(Job {
                base: base(session),
                entries: items.map(|item| item.entry.id().clone()).collect(),
                ready: None,
                is_running: true,
            });
        }
        is_new
    }

    /// Sets the result of the compaction, if there is one.
    pub(super) fn set_ready(&self, result: Option<CompactResult>) {
        let result = result.filter(|result| result.compacted);
        if let (Some(job), Some(result)) = (&mut *self.lock(), result) {
            job.ready = Some(result);
        }
    }

    /// Ends the compaction that was begun.
    pub(super) fn end(&self) {
        if let Some(job) = &mut *self.lock() {
            job.is_running = false;
        }
    }

    /// Returns the tokens that the compaction of the session saves, if it is ready.
    pub(super) fn saving(&self, session: &HostedSession) -> Option<Tokens> {
        let job = self.lock();
        let compacted = job.as_ref()?.fitting(session)?;
        Some(compacted.tokens_before - compacted.tokens_after.unwrap_or(compacted.tokens_before))
    }

    /// Returns the compaction that is ready.
    pub(super) fn take(&self) -> Option<CompactResult> {
        self.lock().as_mut()?.ready.take()
    }

    /// Whether a better summary may follow.
    pub(super) fn is_running(&self) -> bool {
        self.lock().as_ref().is_some_and(|job| job.is_running)
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
    match protocol {
        Protocol::Messages if !has_pair(body, "\"ttl\"", "\"1h\"") => 5 * MINUTE,
        Protocol::Chat | Protocol::Responses
            if has_pair(body, "\"prompt_cache_retention\"", "\"24h\"") =>
        {
            24 * 60 * MINUTE
        }
        _ => 60 * MINUTE,
    }
}

/// Whether a JSON text has a key with this value, both in quotation marks. Those within a string are
/// escaped.
fn has_pair(json: &str, key: &str, value: &str) -> bool {
    memmem::find_iter(json.as_bytes(), value).any(|at| {
        let before = json[..at].trim_end().strip_suffix(':').map(str::trim_end);
        before.is_some_and(|before| before.ends_with(key))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lifetime_of_a_cache_is_that_of_the_provider_or_the_request() {
        let minutes = |protocol, body| cache_lifetime(protocol, body).as_secs() / 60;
        assert_eq!(minutes(Protocol::Messages, "{}"), 5);
        assert_eq!(minutes(Protocol::Messages, r#"{"cache_control":{"ttl" : "1h"}}"#), 60);
        let other = r#"{"input":{"for":"1h"},"text":"\"ttl\":\"1h\"","a":["ttl","1h"]}"#;
        assert_eq!(minutes(Protocol::Messages, other), 5);
        assert_eq!(minutes(Protocol::Responses, r#"{"prompt_cache_retention": "24h"}"#), 1_440);
        assert_eq!(minutes(Protocol::Chat, "{}"), 60);
    }
}

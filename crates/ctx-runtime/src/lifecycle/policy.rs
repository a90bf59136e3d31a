//! Defines when a session is reset.

use ctx_core::Timestamp;
use ctx_session::SessionEntry;
use ctx_session::key::SessionKey;

/// When a session began and was last used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionTimes {
    /// When it began.
    pub began: Timestamp,
    /// Time of the last activity.
    pub last: Timestamp,
}

/// Decides when a session is over, and what its successor inherits. `/new` and `/reset` start a new
/// session regardless of this.
pub trait Lifecycle: Send + Sync {
    /// Whether a session is over, so that the message received now starts a new one.
    fn is_over(&self, key: &SessionKey, times: SessionTimes, now: Timestamp) -> bool {
        let _ = (key, times, now);
        false
    }

    /// Called when a new session replaces `old`. Copies inherited settings into `new`, which is
    /// about to be stored; its id must not change.
    fn begins(&self, key: &SessionKey, old: Option<&SessionEntry>, new: &mut SessionEntry) {
        let _ = key;
        let Some(old) = old else { return };
        let id = std::mem::take(&mut new.session_id);
        let at = new.updated_at;
        *new = SessionEntry {
            session_id: id,
            updated_at: at,
            session_started_at: new.session_started_at,
            session_file: None,
            input_tokens: None,
            output_tokens: None,
            total_tokens: None,
            context_tokens: None,
            compaction_count: None,
            memory_flush_at: None,
            memory_flush_compaction_count: None,
            ..old.clone()
        };
    }
}

/// One session for ever, unless the user starts another. Settings are kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct NeverReset;

impl Lifecycle for NeverReset {}

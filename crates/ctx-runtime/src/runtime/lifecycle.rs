//! When a session begins anew.

use ctx_core::Timestamp;
use ctx_session::key::SessionKey;
use ctx_session::store::SessionEntry;

/// How long a session has been there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lived {
    /// When it began.
    pub began: Timestamp,
    /// When something last happened in it.
    pub last: Timestamp,
}

/// Says when a session is over, and what its successor takes along. `/new` and `/reset` begin one
/// whatever this says.
pub trait Lifecycle: Send + Sync {
    /// Whether a session is over, so that the message that came now begins another.
    fn is_over(&self, key: &SessionKey, lived: Lived, now: Timestamp) -> bool {
        let _ = (key, lived, now);
        false
    }

    /// A session begins in the place of `old`. What stays of the old one's settings is put into
    /// `new`, which is about to be stored; its id stays as it is.
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

/// One session for ever, unless the user begins another. Settings stay.
#[derive(Clone, Copy, Debug, Default)]
pub struct OneSession;

impl Lifecycle for OneSession {}

//! The errors that all stores have in common.

use ctx_core::{Error, ErrorKind};

use crate::{Lease, LogHead, LogName, SessionName};

/// Returns the error of a write under a lease that is not in force: [`ErrorKind::Locked`]. `by` is
/// the host that holds the session, if any.
pub fn lost_lease(lease: &Lease, by: Option<&str>) -> Error {
    let error = Error::new(ErrorKind::Locked, "this host no longer holds the session")
        .with("session", &lease.session.key)
        .with("epoch", lease.epoch);
    let error = match by {
        Some(by) => error.with("held by", by),
        None => error,
    };
    error.hint("nothing was written; send the message again")
}

/// Returns the error of a write at an end that the log does not have: [`ErrorKind::Conflict`].
pub fn moved_head(log: &LogName, at: LogHead, found: Option<LogHead>) -> Error {
    let error = Error::new(ErrorKind::Conflict, "the session's log has another end")
        .with("log", format_args!("{}/{}", log.agent, log.file))
        .with("expected", format_args!("line {} of generation {}", at.lines, at.generation));
    let error = match found {
        Some(head) => error
            .with("found", format_args!("line {} of generation {}", head.lines, head.generation)),
        None => error.with("found", "no log"),
    };
    error.hint("nothing was written; open the session again")
}

/// Returns the error of a change to an entry that has another version: [`ErrorKind::Conflict`].
pub fn changed_entry(session: &SessionName) -> Error {
    Error::new(ErrorKind::Conflict, "another host changed the session's entry")
        .with("session", &session.key)
        .hint("nothing was written; read the entry again")
}

/// Returns the error of an extension of a conversation that has another number of lines:
/// [`ErrorKind::Conflict`].
pub fn changed_conversation(id: &str, at: u64) -> Error {
    Error::new(ErrorKind::Conflict, "another replica extended the conversation")
        .with("conversation", id)
        .with("expected lines", at)
        .hint("nothing was written; read the conversation again")
}

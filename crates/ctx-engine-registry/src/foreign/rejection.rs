//! Why an answer is not applied.

use ctx_core::text::clip;
use ctx_core::{Error, ErrorKind, Tokens};
use ctx_engine_sdk::protocol;

/// Why an answer of an engine is not applied. No part of it is applied then.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rejection {
    /// It is not an answer to the call.
    Malformed {
        /// What is wrong with it.
        why: String,
    },
    /// It names an unknown row.
    UnknownId {
        /// The row.
        id: String,
    },
    /// It names a row twice.
    NamedTwice {
        /// The row.
        id: String,
    },
    /// It drops a protected row.
    ProtectedDropped {
        /// The row.
        id: String,
    },
    /// It separates a tool call from its results.
    GroupSplit {
        /// A row of the group that would remain.
        id: String,
    },
    /// A row is replaced by a message with another role, or with other calls or results.
    ReplacementMismatch {
        /// The row.
        id: String,
        /// What differs.
        why: &'static str,
    },
    /// A new message has the id of a row.
    TakenId {
        /// The id.
        id: String,
    },
    /// A new message cannot be inserted.
    BadInsertion {
        /// Its id.
        id: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// It names rows out of order.
    OutOfOrder {
        /// The first row that is out of order.
        id: String,
    },
    /// The remaining messages do not fit.
    OverBudget {
        /// The tokens of the messages.
        tokens: Tokens,
        /// The maximum.
        budget: Tokens,
        /// The engine's estimate, if it is far off.
        estimated: Option<u64>,
    },
    /// A compaction without a summary.
    EmptySummary,
    /// A compaction that does not make the session smaller.
    NotSmaller {
        /// Tokens before.
        before: Tokens,
        /// Tokens after.
        after: Tokens,
    },
}

impl Rejection {
    /// The names of all rejections.
    pub const NAMES: [&'static str; 12] = [
        "malformed",
        "unknown-id",
        "named-twice",
        "protected-dropped",
        "group-split",
        "replacement-mismatch",
        "taken-id",
        "bad-insertion",
        "out-of-order",
        "over-budget",
        "empty-summary",
        "not-smaller",
    ];

    /// Returns a stable name, for programs and logs.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Malformed { .. } => "malformed",
            Self::UnknownId { .. } => "unknown-id",
            Self::NamedTwice { .. } => "named-twice",
            Self::ProtectedDropped { .. } => "protected-dropped",
            Self::GroupSplit { .. } => "group-split",
            Self::ReplacementMismatch { .. } => "replacement-mismatch",
            Self::TakenId { .. } => "taken-id",
            Self::BadInsertion { .. } => "bad-insertion",
            Self::OutOfOrder { .. } => "out-of-order",
            Self::OverBudget { .. } => "over-budget",
            Self::EmptySummary => "empty-summary",
            Self::NotSmaller { .. } => "not-smaller",
        }
    }

    /// Returns a hint for the engine's author.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Malformed { .. } => "answer with the JSON that the protocol defines for the verb",
            Self::UnknownId { .. } => {
                "name only current rows of the session: each update removes those in 'gone'"
            }
            Self::NamedTwice { .. } => "name each row once, in one list of the plan",
            Self::ProtectedDropped { .. } => "do not drop rows with 'keep'",
            Self::GroupSplit { .. } => "drop all rows of one 'group' or none of them",
            Self::ReplacementMismatch { .. } => {
                "keep the row's role, and its calls and results in their order; or give 'text'"
            }
            Self::TakenId { .. } => "give new messages unused ids",
            Self::BadInsertion { .. } => {
                "add text, as one of the roles user, assistant, system and custom"
            }
            Self::OutOfOrder { .. } => "name rows in their order in the session",
            Self::OverBudget { .. } => {
                "drop rows until their 'tokens' and those of insertions are within 'budget.messages'"
            }
            Self::EmptySummary => "write a summary, or decline the compaction",
            Self::NotSmaller { .. } => "cut later or write less, or decline the compaction",
        }
    }

    pub(super) fn unknown(id: &str) -> Self {
        Self::UnknownId { id: tidy(id) }
    }

    pub(super) fn twice(id: &str) -> Self {
        Self::NamedTwice { id: tidy(id) }
    }

    pub(super) fn mismatch(id: &str, why: &'static str) -> Self {
        Self::ReplacementMismatch { id: tidy(id), why }
    }

    pub(super) fn insertion(id: &str, why: &'static str) -> Self {
        Self::BadInsertion { id: tidy(id), why }
    }
}

/// Prepares a text of an engine for an error message: truncates it, and replaces control
/// characters.
pub(super) fn tidy(text: &str) -> String {
    clip(text, 200).replace(char::is_control, "\u{fffd}")
}

impl std::fmt::Display for Rejection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Malformed { why } => write!(f, "invalid answer: {why}"),
            Self::UnknownId { id } => write!(f, "the answer names the unknown row '{id}'"),
            Self::NamedTwice { id } => write!(f, "the answer names '{id}' twice"),
            Self::ProtectedDropped { id } => write!(f, "the answer drops the protected row '{id}'"),
            Self::GroupSplit { id } => {
                write!(f, "the answer separates a tool call from its results: '{id}' would remain")
            }
            Self::ReplacementMismatch { id, why } => {
                write!(f, "the answer replaces '{id}' with an invalid message: {why}")
            }
            Self::TakenId { id } => {
                write!(f, "the answer adds a message with the existing id '{id}'")
            }
            Self::BadInsertion { id, why } => {
                write!(f, "the answer adds a message '{id}' that cannot be added: {why}")
            }
            Self::OutOfOrder { id } => write!(f, "the answer names '{id}' out of order"),
            Self::OverBudget { tokens, budget, estimated } => {
                write!(f, "the answer leaves {tokens} tokens, but only {budget} fit")?;
                match estimated {
                    Some(n) => write!(f, ", and its estimate is off: it says {n}"),
                    None => Ok(()),
                }
            }
            Self::EmptySummary => f.write_str("the compaction has no summary"),
            Self::NotSmaller { before, after } => {
                write!(
                    f,
                    "the compaction does not reduce the size: {before} tokens before, {after} after"
                )
            }
        }
    }
}

impl std::error::Error for Rejection {}

impl From<Rejection> for Error {
    fn from(rejection: Rejection) -> Self {
        Self::new(ErrorKind::Contract, rejection.to_string()).hint(rejection.hint())
    }
}

impl From<serde_json::Error> for Rejection {
    fn from(error: serde_json::Error) -> Self {
        Self::Malformed { why: tidy(&error.to_string()) }
    }
}

impl From<protocol::Error> for Rejection {
    fn from(error: protocol::Error) -> Self {
        Self::Malformed { why: tidy(&error.message) }
    }
}

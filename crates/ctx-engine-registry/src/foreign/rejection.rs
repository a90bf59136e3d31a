//! Why an answer is not applied.

use ctx_core::text::clip;
use ctx_core::{Error, ErrorKind, Tokens};
use ctx_engine_sdk::protocol;

/// Why an answer of an engine is not applied. No part of it is applied then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rejection {
    /// It is not an answer to the call.
    #[error("invalid answer: {why}")]
    Malformed {
        /// What is wrong with it.
        why: String,
    },
    /// It names an unknown row.
    #[error("the answer names the unknown row '{id}'")]
    UnknownId {
        /// The row.
        id: String,
    },
    /// It names a row twice.
    #[error("the answer names '{id}' twice")]
    NamedTwice {
        /// The row.
        id: String,
    },
    /// It drops a protected row.
    #[error("the answer drops the protected row '{id}'")]
    ProtectedDropped {
        /// The row.
        id: String,
    },
    /// It separates a tool call from its results.
    #[error("the answer separates a tool call from its results: '{id}' would remain")]
    GroupSplit {
        /// A row of the group that would remain.
        id: String,
    },
    /// A row is replaced by a message with another role, or with other calls or results.
    #[error("the answer replaces '{id}' with an invalid message: {why}")]
    ReplacementMismatch {
        /// The row.
        id: String,
        /// What differs.
        why: &'static str,
    },
    /// A new message has the id of a row.
    #[error("the answer adds a message with the existing id '{id}'")]
    TakenId {
        /// The id.
        id: String,
    },
    /// A new message cannot be inserted.
    #[error("the answer adds a message '{id}' that cannot be added: {why}")]
    BadInsertion {
        /// Its id.
        id: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// It names rows out of order.
    #[error("the answer names '{id}' out of order")]
    OutOfOrder {
        /// The first row that is out of order.
        id: String,
    },
    /// The remaining messages do not fit.
    #[error("the answer leaves {tokens} tokens, but only {budget} fit{}", misjudged(*estimated))]
    OverBudget {
        /// The tokens of the messages.
        tokens: Tokens,
        /// The maximum.
        budget: Tokens,
        /// The engine's estimate, if it is far off.
        estimated: Option<u64>,
    },
    /// A compaction without a summary.
    #[error("the compaction has no summary")]
    EmptySummary,
    /// A compaction that does not make the session smaller.
    #[error("the compaction does not reduce the size: {before} tokens before, {after} after")]
    NotSmaller {
        /// Tokens before.
        before: Tokens,
        /// Tokens after.
        after: Tokens,
    },
}

impl Rejection {
    /// Returns a stable name, for programs and logs.
    pub fn name(&self) -> &'static str {
        self.described().0
    }

    /// Returns a hint for the engine's author.
    pub fn hint(&self) -> &'static str {
        self.described().1
    }

    /// Returns its name and its hint.
    fn described(&self) -> (&'static str, &'static str) {
        match self {
            Self::Malformed { .. } => {
                ("malformed", "answer with the JSON that the protocol defines for the verb")
            }
            Self::UnknownId { .. } => (
                "unknown-id",
                "name only current rows of the session: each update removes those in 'gone'",
            ),
            Self::NamedTwice { .. } => {
                ("named-twice", "name each row once, in one list of the plan")
            }
            Self::ProtectedDropped { .. } => ("protected-dropped", "do not drop rows with 'keep'"),
            Self::GroupSplit { .. } => {
                ("group-split", "drop all rows of one 'group' or none of them")
            }
            Self::ReplacementMismatch { .. } => (
                "replacement-mismatch",
                "keep the row's role, and its calls and results in their order; or give 'text'",
            ),
            Self::TakenId { .. } => ("taken-id", "give new messages unused ids"),
            Self::BadInsertion { .. } => (
                "bad-insertion",
                "add text, as one of the roles user, assistant, system and custom",
            ),
            Self::OutOfOrder { .. } => ("out-of-order", "name rows in their order in the session"),
            Self::OverBudget { .. } => (
                "over-budget",
                "drop rows until their 'tokens' and those of insertions are within 'budget.messages'",
            ),
            Self::EmptySummary => ("empty-summary", "write a summary, or decline the compaction"),
            Self::NotSmaller { .. } => {
                ("not-smaller", "cut later or write less, or decline the compaction")
            }
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

fn misjudged(estimated: Option<u64>) -> String {
    estimated.map(|n| format!(", and its estimate is off: it says {n}")).unwrap_or_default()
}

impl From<Rejection> for Error {
    fn from(rejection: Rejection) -> Self {
        Self::new(ErrorKind::Contract, rejection.to_string()).hint(rejection.hint())
    }
}

impl From<protocol::Error> for Rejection {
    fn from(error: protocol::Error) -> Self {
        Self::Malformed { why: tidy(&error.message) }
    }
}

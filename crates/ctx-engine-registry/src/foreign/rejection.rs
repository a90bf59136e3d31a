//! Why an answer is not carried out.

use ctx_core::{Error, ErrorKind, Tokens};
use ctx_engine_sdk::protocol;

/// Why an answer of an engine is not carried out. Nothing of it is then.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rejection {
    /// It is no answer to what was asked.
    Malformed {
        /// What is wrong with it.
        why: String,
    },
    /// It names a row that is not there.
    UnknownId {
        /// The row.
        id: String,
    },
    /// It says two things of one row.
    NamedTwice {
        /// The row.
        id: String,
    },
    /// It drops a row that must stay.
    ProtectedDropped {
        /// The row.
        id: String,
    },
    /// It parts a tool call from its results.
    GroupSplit {
        /// A row that would be left.
        id: String,
    },
    /// A row is replaced by a message of another role, or with other calls or results.
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
    /// A new message is none that can be added.
    BadInsertion {
        /// Its id.
        id: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Rows are named in another order than theirs.
    OutOfOrder {
        /// The first that comes too late.
        id: String,
    },
    /// What is left does not fit.
    OverBudget {
        /// What the messages would measure.
        tokens: Tokens,
        /// What they may.
        budget: Tokens,
        /// What the engine takes them for, where it is far off.
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
    /// The names of all of them.
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

    /// A stable name, for programs and logs.
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

    /// What the engine's author can do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Malformed { .. } => "answer with the JSON that the protocol has for the verb",
            Self::UnknownId { .. } => {
                "name rows of the session as it is: after each update, without those that are gone"
            }
            Self::NamedTwice { .. } => "name each row once, in one list of the plan",
            Self::ProtectedDropped { .. } => "do not drop rows with 'keep'",
            Self::GroupSplit { .. } => "drop all rows of one 'group' or none of them",
            Self::ReplacementMismatch { .. } => {
                "keep the row's role, and its calls and results in their order; or give 'text'"
            }
            Self::TakenId { .. } => "give new messages ids of their own",
            Self::BadInsertion { .. } => {
                "add text, as one of the roles user, assistant, system and custom"
            }
            Self::OutOfOrder { .. } => "name rows in the order they came in",
            Self::OverBudget { .. } => {
                "drop until the rows' 'tokens' are within 'budget.messages', additions included"
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

/// What an engine wrote, as it may stand in a message: short, and nothing that a terminal obeys.
pub(super) fn tidy(text: &str) -> String {
    let plain = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut tidied: String = text.chars().take(200).map(plain).collect();
    if text.chars().nth(200).is_some() {
        tidied.push('…');
    }
    tidied
}

impl std::fmt::Display for Rejection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Malformed { why } => write!(f, "the answer is none: {why}"),
            Self::UnknownId { id } => write!(f, "the answer names '{id}', which is no row"),
            Self::NamedTwice { id } => write!(f, "the answer names '{id}' twice"),
            Self::ProtectedDropped { id } => write!(f, "the answer drops '{id}', which must stay"),
            Self::GroupSplit { id } => {
                write!(f, "the answer parts a tool call from its results: '{id}' would be left")
            }
            Self::ReplacementMismatch { id, why } => {
                write!(f, "the answer replaces '{id}' by a message that cannot stand for it: {why}")
            }
            Self::TakenId { id } => write!(f, "the answer adds a message '{id}', and there is one"),
            Self::BadInsertion { id, why } => {
                write!(f, "the answer adds a message '{id}' that cannot be added: {why}")
            }
            Self::OutOfOrder { id } => write!(f, "the answer names '{id}' out of order"),
            Self::OverBudget { tokens, budget, estimated } => {
                write!(f, "the answer leaves {tokens} tokens where {budget} fit")?;
                match estimated {
                    Some(n) => write!(f, ", and its estimate is off: it takes them for {n}"),
                    None => Ok(()),
                }
            }
            Self::EmptySummary => f.write_str("the compaction has no summary"),
            Self::NotSmaller { before, after } => {
                write!(f, "the compaction makes {after} tokens of {before}")
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

//! A model's proposals for changing facts, and the checks they must pass.

use std::fmt;

use ctx_facts::Statement;

use super::update::{Relation, relation};
use super::{Fact, FactCandidate, FactId, Update};

/// The maximum number of proposals considered per answer.
pub(crate) const PROPOSALS_MAX: usize = 50;

/// The maximum number of facts that one answer may supersede. It limits the damage of a prompt
/// injection that asks to supersede everything.
pub(super) const SUPERSEDED_MAX: usize = 10;

/// The operation that a model proposes for a fact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProposedOperation {
    /// Add a new fact, if it is new. Also the value of an unknown operation.
    #[default]
    Add,
    /// Update a known fact with more detail.
    Update,
    /// Supersede a known fact.
    Supersede,
    /// Delete a fact. Never done.
    Delete,
    /// Do nothing.
    None,
}

impl ProposedOperation {
    /// Parses an operation.
    #[must_use]
    pub(crate) fn from_name(name: &str) -> Self {
        match name.trim().to_ascii_lowercase().as_str() {
            "update" | "edit" | "modify" | "merge" => Self::Update,
            "supersede" | "replace" | "contradict" | "invalidate" => Self::Supersede,
            "delete" | "remove" | "forget" | "erase" | "drop" | "clear" => Self::Delete,
            "none" | "noop" | "skip" | "ignore" | "keep" => Self::None,
            _ => Self::Add,
        }
    }
}

/// One item of a model's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The proposed operation.
    pub operation: ProposedOperation,
    /// The id of the fact to change, as the model wrote it.
    pub id: Option<String>,
    /// The new fact; a deletion has none.
    pub candidate: Option<FactCandidate>,
}

/// A proposal that was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedProposal {
    /// Its index in the answer.
    pub at: usize,
    /// The reason.
    pub reason: RejectionReason,
}

/// Why a proposal was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RejectionReason {
    /// A model may not delete facts.
    Deletion,
    /// No current fact has this id.
    UnknownId,
    /// The fact to be replaced is about something else.
    OtherSubject,
    /// The answer exceeds the limit of changes.
    TooMany,
    /// It is empty.
    Empty,
    /// It contains numbers, paths or names that are not in the messages.
    Ungrounded,
    /// It holds what looks like a secret.
    Secret,
    /// Its type is unknown.
    UnknownType,
}

impl fmt::Display for RejectedProposal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = match self.reason {
            RejectionReason::Deletion => "a model may not delete facts",
            RejectionReason::UnknownId => "no current fact has this id",
            RejectionReason::OtherSubject => "it would replace a fact about another subject",
            RejectionReason::TooMany => "the answer has too many changes",
            RejectionReason::Empty => "it is empty",
            RejectionReason::Ungrounded => "it names something that is not in the messages",
            RejectionReason::Secret => "it holds what looks like a secret",
            RejectionReason::UnknownType => "unknown type",
        };
        write!(f, "proposal {}: {reason}", self.at + 1)
    }
}

/// Decides about a proposal: the rules' decision, or the proposed operation if it is stronger and
/// the fact it names is about the same subject.
pub(super) fn check<'a>(
    at: usize,
    proposal: &Proposal,
    decided: Option<Update>,
    known: impl Fn(FactId) -> Option<&'a Fact>,
) -> Result<Update, RejectedProposal> {
    let refuse = |reason| Err(RejectedProposal { at, reason });
    if proposal.operation == ProposedOperation::Delete {
        return refuse(RejectionReason::Deletion);
    }
    let (Some(candidate), Some(decided)) = (&proposal.candidate, decided) else {
        return refuse(RejectionReason::Empty);
    };
    if proposal.operation == ProposedOperation::None {
        return match decided {
            // The model proposes to do nothing and names no fact.
            Update::None { id } => Ok(Update::None { id }),
            _ => refuse(RejectionReason::Empty),
        };
    }
    if !matches!(proposal.operation, ProposedOperation::Update | ProposedOperation::Supersede) {
        return Ok(decided);
    }
    let id = proposal.id.as_deref().and_then(|id| uuid::Uuid::parse_str(id.trim()).ok());
    let Some(old) = id.and_then(|id| known(FactId(id))).filter(|fact| fact.is_current()) else {
        return refuse(RejectionReason::UnknownId);
    };
    if matches!((&decided, proposal.operation), (Update::None { .. }, ProposedOperation::Update)) {
        return Ok(decided);
    }
    let (was, is) = (Statement::of(&old.content), Statement::of(&candidate.content));
    let stands = relation(old.kind, &was, candidate.kind, &is);
    if stands == Relation::Unrelated && !is.resembles(&was) {
        return refuse(RejectionReason::OtherSubject);
    }
    Ok(match (proposal.operation, stands) {
        // An update that would lose information supersedes instead, so that the old text stays
        // readable.
        (ProposedOperation::Update, Relation::Detail | Relation::Known) => {
            Update::Update { id: old.id }
        }
        _ => match decided {
            Update::None { id } if id == old.id => decided,
            Update::None { id: by } => Update::Retire { ids: vec![old.id], by },
            Update::Supersede { mut ids } => {
                if !ids.contains(&old.id) {
                    ids.push(old.id);
                }
                Update::Supersede { ids }
            }
            _ => Update::Supersede { ids: vec![old.id] },
        },
    })
}

//! What a model would like to be done to the facts, and what of it is done.

use std::fmt;

use super::claim::{Claim, overlap, shared};
use super::update::{Relation, relation};
use super::{Candidate, Fact, FactId, Update};

/// At most this many proposals of one answer are looked at.
pub const PROPOSALS_MAX: usize = 50;

/// At most so many facts are superseded by one answer: a model that is told to make an end of all
/// that is known gets no further.
pub const SUPERSEDED_MAX: usize = 10;

/// What a model would like to be done with a fact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wish {
    /// It does not say: the rules decide.
    #[default]
    Unsaid,
    /// A new fact.
    Add,
    /// A known one in more detail.
    Update,
    /// In the place of a known one.
    Supersede,
    /// Taken away. Never done.
    Delete,
    /// Nothing.
    None,
}

impl Wish {
    /// The wish of that name; what is no known name is [`Wish::Unsaid`].
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        let bare = name.trim().to_ascii_lowercase();
        match bare.as_str() {
            "add" | "new" | "create" => Self::Add,
            "update" | "edit" | "modify" | "merge" => Self::Update,
            "supersede" | "replace" | "contradict" | "invalidate" => Self::Supersede,
            "delete" | "remove" | "forget" | "erase" | "drop" | "clear" => Self::Delete,
            "none" | "noop" | "skip" | "ignore" | "keep" => Self::None,
            _ => Self::Unsaid,
        }
    }
}

/// One item of a model's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// What is wished.
    pub wish: Wish,
    /// The fact it is wished for, as the model wrote it.
    pub id: Option<String>,
    /// The new fact; a deletion has none.
    pub candidate: Option<Candidate>,
}

/// A proposal that was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Its place in the answer.
    pub at: usize,
    /// Why.
    pub reason: RefusalReason,
}

/// Why a proposal was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefusalReason {
    /// Facts are not deleted on the word of a model.
    Deletion,
    /// There is no fact of that id that holds.
    UnknownId,
    /// It is to take the place of a fact that is about something else.
    OtherSubject,
    /// One answer may not ask for so much.
    TooMany,
    /// It says nothing.
    Empty,
    /// Numbers, paths or names in it do not stand in what was said.
    Ungrounded,
    /// It holds what looks like a secret.
    Secret,
    /// Its type is none of the six.
    UnknownType,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = match self.reason {
            RefusalReason::Deletion => "facts are not deleted on the word of a model",
            RefusalReason::UnknownId => "no fact of that id holds",
            RefusalReason::OtherSubject => "it would take the place of a fact about something else",
            RefusalReason::TooMany => "one answer may not ask for so much",
            RefusalReason::Empty => "it says nothing",
            RefusalReason::Ungrounded => "what it names does not stand in what was said",
            RefusalReason::Secret => "it holds what looks like a secret",
            RefusalReason::UnknownType => "its type is none of the six",
        };
        write!(f, "proposal {}: {reason}", self.at + 1)
    }
}

/// What is done about a proposal: what the rules decide, and what is wished where it is the
/// stronger and the fact it is wished for is about the same.
pub(super) fn check<'a>(
    at: usize,
    proposal: &Proposal,
    decided: Option<Update>,
    known: impl Fn(FactId) -> Option<&'a Fact>,
) -> Result<Update, Refusal> {
    let refuse = |reason| Err(Refusal { at, reason });
    if at >= PROPOSALS_MAX {
        return refuse(RefusalReason::TooMany);
    }
    if proposal.wish == Wish::Delete {
        return refuse(RefusalReason::Deletion);
    }
    let (Some(candidate), Some(decided)) = (&proposal.candidate, decided) else {
        return refuse(RefusalReason::Empty);
    };
    if proposal.wish == Wish::None {
        return match decided {
            // It is the model's word that nothing is to be done; there is no fact to name.
            Update::None { id } => Ok(Update::None { id }),
            _ => refuse(RefusalReason::Empty),
        };
    }
    if !matches!(proposal.wish, Wish::Update | Wish::Supersede) {
        return Ok(decided);
    }
    let id = proposal.id.as_deref().and_then(|id| uuid::Uuid::parse_str(id.trim()).ok());
    let Some(old) = id.and_then(|id| known(FactId(id))).filter(|fact| fact.is_current()) else {
        return refuse(RefusalReason::UnknownId);
    };
    if matches!(decided, Update::None { .. }) {
        return Ok(decided);
    }
    let (was, is) = (Claim::of(&old.content), Claim::of(&candidate.content));
    let stands = relation(old.kind, &was, candidate.kind, &is);
    let same_subject = stands != Relation::Unrelated
        || shared(&was.words, &is.words) >= 2
        || overlap(&was.words, &is.words) >= 0.3;
    if !same_subject {
        return refuse(RefusalReason::OtherSubject);
    }
    Ok(match (proposal.wish, stands) {
        // What would be lost by telling it anew is superseded, and stays readable.
        (Wish::Update, Relation::Detail | Relation::Known) => Update::Update { id: old.id },
        _ => match decided {
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

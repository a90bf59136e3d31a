//! Extracts facts from messages.

mod clauses;
mod lasting;
mod rules;

use ctx_core::{Role, Timestamp};

use super::{FactCandidate, Proposal, RejectedProposal, Spent};
use ctx_search::Segment;

pub use rules::find_facts;
pub(crate) use rules::is_secret;

/// One message, as an extractor reads it.
#[derive(Clone, Copy, Debug)]
pub struct SourceMessage<'a> {
    /// The id of its entry.
    pub entry: &'a str,
    /// The session it belongs to.
    pub session: &'a str,
    /// Its role.
    pub role: &'a Role,
    /// Its time.
    pub timestamp: Timestamp,
    /// The text.
    pub text: &'a str,
}

impl<'a> SourceMessage<'a> {
    /// Returns the message of an archived segment. `id` is the segment's own id, written out by the
    /// caller; it is used if the segment has no entry.
    #[must_use]
    pub fn of(segment: &'a Segment, id: &'a str) -> Self {
        Self {
            entry: segment.entry_id.as_deref().unwrap_or(id),
            session: &segment.session_id,
            role: &segment.role,
            timestamp: segment.timestamp,
            text: &segment.content,
        }
    }
}

/// The result of an extraction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extraction {
    /// Facts found by rules, for [`FactStore::learn`](super::FactStore::learn).
    pub candidates: Vec<FactCandidate>,
    /// A model's proposals, for [`FactStore::accept`](super::FactStore::accept).
    pub proposals: Vec<Proposal>,
    /// The rejected parts of the model's answers.
    pub rejected: Vec<RejectedProposal>,
    /// Warnings for the user, one sentence each.
    pub warnings: Vec<String>,
    /// What it cost.
    pub spent: Spent,
}

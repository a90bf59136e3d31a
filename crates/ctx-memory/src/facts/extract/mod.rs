//! Extracts facts from messages.

mod clauses;
mod lasting;
mod rules;

use std::borrow::Cow;

use ctx_core::{Role, Timestamp};

use super::{FactCandidate, Proposal, RejectedProposal, Spent};
use ctx_search::Segment;

pub use rules::find_facts;
pub(crate) use rules::is_secret;

/// One message, as an extractor reads it.
#[derive(Clone, Debug)]
pub struct SourceMessage<'a> {
    /// The id of its entry.
    pub entry: Cow<'a, str>,
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
    /// Returns the message of an archived segment. A segment without an entry has its own id.
    #[must_use]
    pub fn of(segment: &'a Segment) -> Self {
        let own = || segment.id.to_string().into();
        Self {
            entry: segment.entry_id.as_deref().map_or_else(own, Cow::Borrowed),
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

impl Extraction {
    pub(super) fn warn(&mut self, warning: impl Into<String>) {
        let warning = warning.into();
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}

//! From what was said to facts.

mod clauses;
mod exclude;
mod lines;
mod rules;
mod table;
mod tidy;

use async_trait::async_trait;
use ctx_core::{Result, Role, Timestamp};

use super::{Candidate, Fact, Proposal, Refusal, Spent};
use crate::Segment;

pub use exclude::is_injected;
pub use rules::{IsSecret, Rules};

/// One message, as an extractor reads it.
#[derive(Clone, Copy, Debug)]
pub struct Said<'a> {
    /// The entry it is.
    pub entry: &'a str,
    /// The session it was said in.
    pub session: &'a str,
    /// Who said it.
    pub role: &'a Role,
    /// When.
    pub timestamp: Timestamp,
    /// The text.
    pub text: &'a str,
}

impl<'a> Said<'a> {
    /// What a segment of the archive says. One that comes from no entry is named by its own id,
    /// which the caller writes out.
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

/// What an extractor found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extracted {
    /// Facts found by rules, for [`FactStore::learn`](super::FactStore::learn).
    pub candidates: Vec<Candidate>,
    /// What a model proposes, for [`FactStore::accept`](super::FactStore::accept).
    pub proposals: Vec<Proposal>,
    /// What of the model's answers was not taken.
    pub refused: Vec<Refusal>,
    /// What a person should hear of, each in one sentence.
    pub warnings: Vec<String>,
    /// What it cost.
    pub spent: Spent,
}

/// Finds facts in what was said.
#[async_trait]
pub trait Extractor: Send + Sync {
    /// The facts in these messages, in their order. `known` are facts that hold, those that are
    /// most like what is said; an extractor may refer to them.
    ///
    /// # Errors
    ///
    /// Where nothing could be done at all. An extractor that falls back to another does not fail.
    async fn extract(&self, said: &[Said<'_>], known: &[Fact]) -> Result<Extracted>;
}

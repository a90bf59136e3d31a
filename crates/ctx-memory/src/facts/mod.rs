//! Facts: what was decided, built, set, broken, done, in a sentence each.
//!
//! ```text
//! what was said --> Extractor --> candidates --> decide --> FactStore (knowledge.jsonl)
//! ```
//!
//! A fact is never deleted because another says otherwise: it is superseded, and stays readable as
//! what held at the time. Only [`FactStore::forget`] takes facts away, from the disk as well.

mod budget;
mod claim;
mod extract;
mod fact;
mod file;
mod forget;
mod index;
mod model;
mod proposal;
mod purse;
mod search;
mod store;
mod update;
mod words;

pub use budget::{Budget, Cap, Spent};
pub use extract::{Extracted, Extractor, IsSecret, Rules, Said, is_injected};
pub use fact::{CONTENT_MAX, CONTEXT_MAX, Candidate, Fact, FactId, FactKind, SOURCES_MAX};
pub use forget::Erase;
pub use model::ModelExtractor;
pub use proposal::{PROPOSALS_MAX, Proposal, Refusal, RefusalReason, SUPERSEDED_MAX, Wish};
pub(crate) use purse::{Purse, Spending};
pub use search::{FactHit, FactQuery, threshold};
pub use store::{FactStore, Learned, Scope};
pub use update::{Update, decide};

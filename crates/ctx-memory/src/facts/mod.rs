//! Facts: decisions, implementations, settings, issues and task states, one sentence each.
//!
//! ```text
//! messages --> find_facts, ModelExtractor --> candidates --> decide --> FactStore (knowledge.jsonl)
//! ```
//!
//! A contradicted fact is not deleted: it is superseded, and stays readable as a past fact. Only
//! [`FactStore::forget`] removes facts, from the disk as well.

mod daily_budget;
mod extract;
mod fact;
mod file;
mod forget;
mod index;
mod model;
mod proposal;
mod search;
mod spend_ledger;
mod store;
mod update;
mod words;

pub(crate) use daily_budget::DailySpend;
pub use daily_budget::{DailyBudget, Spent};
pub(crate) use extract::is_secret;
pub use extract::{Extraction, SourceMessage, find_facts};
pub(crate) use fact::SOURCES_MAX;
pub use fact::{CONTENT_MAX, Fact, FactCandidate, FactId, FactKind};
pub use forget::FactSelector;
pub use model::ModelExtractor;
pub(crate) use proposal::PROPOSALS_MAX;
pub use proposal::{Proposal, ProposedOperation, RejectedProposal, RejectionReason};
pub use search::{FactHit, FactQuery};
pub(crate) use spend_ledger::{SpendGuard, SpendLedger};
pub use store::{FactStore, LearnOutcome, Scope};
pub use update::{Update, decide};

//! Facts: what messages state that must not be lost.
//!
//! [`required_facts`] finds the facts of messages that a summary is about to replace: demands, decisions, open
//! questions, errors, paths, ids, numbers, names in code, each with the entry that states it last.

#![forbid(unsafe_code)]

mod arguments;
mod citations;
pub mod command;
mod fact;
mod files;
mod ledger;
mod message;
mod options;
mod statement;

pub use arguments::{Named, strings};
pub use citations::{Citation, ShortIds, citations, without_citations, without_unknown_citations};
pub use fact::{FactKind, RequiredFact};
pub use files::{FileLists, base_folder, modified_files, names_base_folder, with_relative_paths};
pub use ledger::{
    FactLedger, LedgerFacts, SupersededFact, chooses, has_reason, own_words, required_facts,
    stated_kind,
};
pub use message::{CitedMessage, PreviousSummary};
pub use options::chosen_option;
pub use statement::{Comparison, Feature, Statement};

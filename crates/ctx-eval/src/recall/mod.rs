//! Measures how well memory retrieves answers, over labelled conversations.
//!
//! A conversation is indexed with one segment per turn, by the same code as the store. Each
//! question is a query, unchanged. The measure is the share of the answering turns among the first
//! results. Two formats of labelled conversations are supported, [`DatasetFormat::Locomo`] and
//! [`DatasetFormat::Beam`]; other data can be used in one of these formats.

mod beam;
mod cache;
mod conversation;
mod dates;
mod locomo;
mod metrics;
mod report;
mod run;

pub use cache::VectorCache;
pub use conversation::{Conversation, DatasetFormat, Question, load};
pub use report::{AtCuts, CategoryReport, RecallReport};
pub use run::{RecallSetup, Vectors, measure};

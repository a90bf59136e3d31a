//! Measures how well memory retrieves answers, over labelled conversations.
//!
//! A conversation is archived in a memory without files, one segment per turn, and searched as by
//! `ctx memory search`. Each question is a query, unchanged. The measure is the share of the
//! answering turns among the first results. Two formats of labelled conversations are supported,
//! [`DatasetFormat::Locomo`] and [`DatasetFormat::Beam`]; other data can be used in one of these
//! formats. [`session`] makes questions from a recorded session of an agent.

mod beam;
mod cache;
mod conversation;
mod dates;
mod fts5;
mod locomo;
mod metrics;
mod report;
mod run;
mod session;

pub use cache::VectorCache;
pub use conversation::{Conversation, DatasetFormat, Question, Recorded, load};
pub use report::{AtCuts, CategoryReport, RecallReport};
pub use run::{RecallSetup, measure};
pub use session::session;
pub(crate) use session::subjects;

//! How well memory finds what it is asked for, over labelled conversations.
//!
//! A conversation is indexed one turn a segment, by the code that searches the store; each of its
//! questions is asked as it stands, and what counts is how many of the turns that answer it come
//! among the first. Two forms of labelled conversations are read, [`Form::Locomo`] and [`Form::Beam`];
//! anybody's own will do if they have the form of one of them.

mod beam;
mod cache;
mod conversation;
mod dates;
mod locomo;
mod metrics;
mod report;
mod run;

pub use cache::VectorCache;
pub use conversation::{Conversation, Form, Question, load};
pub use report::{AtCuts, CategoryReport, RecallReport};
pub use run::{RecallSetup, Vectors, measure};

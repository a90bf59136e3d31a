//! Lexical search: finds segments that share words with a query, and scores them by BM25.
//!
//! The scored unit is a *piece*: at most 800 characters of a segment, after its date
//! and speaker. A segment has the score of its best piece, because a long message has many topics
//! and a question has one.
//!
//! Storage and scoring are separate: an index implements [`Postings`], and [`score`] sums the
//! statistics of all indexes before it weighs a term. So a segment has the same score in any index.
//! [`Delta`] is the in-memory index, where a new segment is found at once.

mod bm25;
mod delta;
mod pieces;
mod postings;
mod scores;

pub use bm25::{Bm25, QueryTerm, score};
pub(crate) use bm25::{rarity, score_rows};
pub use delta::Delta;
pub use pieces::pieces;
pub use postings::{Corpus, Posting, Postings};
pub use scores::Scores;

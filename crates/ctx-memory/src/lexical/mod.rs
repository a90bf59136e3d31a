//! Which segments share words with a query, and how much that says: BM25.
//!
//! What is scored is a *piece*: at most [`PIECE_CHARS`] characters of a segment, with its date and
//! speaker in front. A segment is as good as the best of its pieces, because a long message is
//! about many things and a question about one of them.
//!
//! Where postings come from is apart from what they are worth: an index is a [`Postings`], and
//! [`score`] sums their statistics before it weighs a term, so that a segment has the same score
//! whichever of them holds it. [`Delta`] is the one in memory, where a segment is found at once.

mod bm25;
mod delta;
mod pieces;
mod postings;
mod scores;

pub use bm25::{Bm25, QueryTerm, score};
pub(crate) use bm25::{rarity, score_rows};
pub use delta::Delta;
pub use pieces::{PIECE_CHARS, pieces};
pub use postings::{Corpus, Posting, Postings};
pub(crate) use scores::Scores;

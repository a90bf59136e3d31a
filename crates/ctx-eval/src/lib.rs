//! Replay of recorded transcripts: what each model request would have carried, what an engine
//! would have left out, and what both would have cost.

mod cache;
mod replay;
mod report;

pub use cache::{CACHE_MIN_TOKENS, CACHE_TTL, PromptCache};
pub use replay::{Setup, replay};
pub use report::{LayerTotals, ReplayReport, RequestDetail, RequestReport, SessionReport, Totals};

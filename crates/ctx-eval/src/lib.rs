//! Replay of recorded transcripts: what each model request would have carried, what an engine
//! would have left out, and what both would have cost. And how well memory finds what it is asked
//! for, over labelled conversations.

#![forbid(unsafe_code)]

mod cache;
pub mod eval;
pub mod frame;
pub mod html;
pub mod recall;
mod replay;
mod report;
mod status;
mod tally;

// A replay tries the engines of this build, so the layers must be linked.
use ctx_layers as _;

pub use cache::{CACHE_MIN_TOKENS, CACHE_TTL, PromptCache};
pub use replay::{Setup, replay};
pub use report::{
    CompactionReport, LayerTotals, ReplayReport, RequestDetail, RequestReport, SessionReport,
    Totals,
};
pub use status::{ContextReport, ModelName, Reported, StatusReport, StatusSetup, status};

//! Replay of recorded transcripts: what each model request would have carried, what an engine
//! would have left out, and what both would have cost. And how well memory finds what it is asked
//! for, over labelled conversations.

#![forbid(unsafe_code)]

mod begins;
mod cache;
mod calibration;
mod diff;
pub mod eval;
mod forms;
pub mod frame;
pub mod html;
mod manifest;
pub mod recall;
mod recorded;
mod replay;
mod report;
mod status;
mod tally;

// A replay tries the engines of this build, so the layers must be linked.
use ctx_layers as _;

pub use begins::begins;
pub use cache::{CACHE_MIN_TOKENS, CACHE_TTL, PromptCache};
pub use calibration::{Baseline, SessionCalibration};
pub use diff::{Diff, Removed};
pub use manifest::{manifest_at, request_ends};
pub use recorded::{Recorded, RecordedTotals};
pub use replay::{Setup, replay};
pub use report::{
    CompactionReport, Form, LayerTotals, ReplayReport, RequestDetail, RequestReport, SessionReport,
    Totals,
};
pub use status::{
    ContextReport, ModelName, Reported, StatusReport, StatusSetup, TokenSource, status,
};

//! Replays recorded transcripts. Reports the content of each model request, the messages that an
//! engine would have dropped, and the cost with and without ctx. Also measures how well memory
//! retrieves answers, over labelled conversations.

#![forbid(unsafe_code)]

mod cache;
mod calibration;
mod diff;
mod edited_messages;
pub mod eval;
mod layer_tally;
mod manifest;
mod preview;
pub mod recall;
mod recorded_usage;
mod replay;
mod report;
mod status;

// A replay uses the engines of this build, so the layers must be linked.
use ctx_layers as _;

pub use calibration::{Baseline, RecordedCompaction, SessionCalibration, requests_after};
pub use diff::{CompactionDiff, RemovedMessage};
pub use manifest::{manifest_at, request_ends};
pub use preview::preview;
pub use recorded_usage::{RecordedTotals, RecordedUsage};
pub use replay::{ReplaySetup, replay};
pub use report::{
    CompactionReport, EditedMessage, LayerTotals, ReplayReport, ReplayTotals, RequestDetail,
    RequestReport, SessionReport,
};
pub use status::{ContextReport, ModelName, ReportedSize, StatusReport, TokenSource, status};

//! Layer 2: bounds a tool result when it is written.
//!
//! One `cat` of a large file can fill a window that a day of conversation does not. The guard
//! bounds each result on arrival, and the sum of all results. [`ToolGuard`] is a layer over the
//! messages that have not been sent yet; [`ToolGuard::install`] bounds each result before it is
//! written to the transcript, for the duration of a run.
//!
//! Under profile `copaw` results are bounded by age instead: see [`Offload`].

#![forbid(unsafe_code)]

mod aggregate;
mod config;
mod cut;
mod hook;
mod layer;
mod limits;
mod notice;
mod offload;
mod replacement;
mod single;

pub use config::{Config, Offload};
pub use hook::{ToolHooks, WriteGuard};
pub use layer::ToolGuard;
pub use limits::{ResultLimit, ResultLimits};
pub use notice::{
    AGGREGATE_ELISION_NOTICE, CONTEXT_LIMIT_TRUNCATION_NOTICE, MIDDLE_CONTENT_OMITTED_NOTICE,
    PREEMPTIVE_TOOL_RESULT_COMPACTION_PLACEHOLDER,
};

#[cfg(feature = "register")]
mod register;

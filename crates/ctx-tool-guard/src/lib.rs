//! Layer 2: bounds a tool result when it is written.
//!
//! One `cat` of a large file can fill a window that a day's talk has not. The guard bounds each
//! result as soon as it is there, and the sum of all results: [`ToolGuard`] is a layer over the
//! messages that have not been sent yet, and [`ToolGuard::install`] does the same to each result on
//! its way into the transcript, for as long as a run lasts.
//!
//! Under profile `copaw` it works by age instead: see [`Offload`].

#![forbid(unsafe_code)]

mod aggregate;
mod config;
mod cut;
mod hook;
mod layer;
mod limits;
mod notice;
mod offload;
mod single;

pub use config::{Config, Offload};
pub use layer::ToolGuard;
pub use limits::{Limits, Single};
pub use notice::{
    AGGREGATE_ELISION_NOTICE, CONTEXT_LIMIT_TRUNCATION_NOTICE, MIDDLE_CONTENT_OMITTED_NOTICE,
    PREEMPTIVE_TOOL_RESULT_COMPACTION_PLACEHOLDER,
};

#[cfg(feature = "register")]
mod register;

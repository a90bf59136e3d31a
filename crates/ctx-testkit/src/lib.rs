//! Transcripts made to measure, for tests and benchmarks: ours and those of engine authors.
//!
//! Everything here is deterministic: the same arguments give the same messages.

#![forbid(unsafe_code)]

mod sample;

pub use sample::{Sample, entries};

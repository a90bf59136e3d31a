//! Transcripts made to measure and a fake model provider, for tests and benchmarks: ours and those
//! of engine authors.
//!
//! All transcripts are deterministic: the same arguments give the same messages. The provider is
//! behind the feature `provider`, because it brings an HTTP server.

#![forbid(unsafe_code)]

#[cfg(feature = "provider")]
pub mod provider;
mod sample;
mod transcript;

pub use sample::{Sample, entries};
pub use transcript::{RandomTranscript, Transcript};

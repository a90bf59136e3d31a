//! Generated transcripts, scripted models and a fake model provider, for the tests and benchmarks
//! of this project and of engine authors.
//!
//! All transcripts are deterministic: the same arguments give the same messages. The provider is
//! behind the feature `provider`, because it brings an HTTP server; the conformance suite for
//! context engines is behind `conformance`, a PostgreSQL server behind `postgres`.

#![forbid(unsafe_code)]

pub mod chat;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod memory;
mod needed;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "provider")]
pub mod provider;
mod random;
mod recorded;
mod sample;
mod summarizer;
mod summary;
mod transcript;
mod virtual_timer;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use needed::{cases, skipped};
pub use random::Random;
pub use recorded::recorded;
pub use sample::{Sample, entries};
pub use summarizer::{Reply, ScriptedSummarizer};
pub use summary::faithful_summary;
pub use transcript::{RandomTranscript, Transcript};
pub use virtual_timer::VirtualTimer;

/// Locks a mutex, even if a test panicked while holding it.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

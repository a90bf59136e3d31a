//! Layer 4: trims stale tool results, per request, in memory.
//!
//! A long session sends mostly old tool output again and again. [`Pruning`] trims a stale result to
//! its two ends, or replaces it with a placeholder; the transcript keeps all of it. It is off until
//! the configuration names a [`Mode`]: the model sees less than the session contains, so leave it
//! off where the model needs old output verbatim, as in an audit.

#![forbid(unsafe_code)]

mod config;
mod layer;
mod result;
mod scope;
mod tools;
mod ttl;

pub use config::{Config, HardClear, Mode, SoftTrim, Tools};
pub use layer::Pruning;
pub use ttl::Ttl;

#[cfg(feature = "register")]
mod register;

//! Layer 4: trims stale tool results, per request, in memory.
//!
//! Old tool output is most of what a long session sends again and again. [`Pruning`] shows both
//! ends of a stale result, or only that there was one; the transcript keeps all of it. It is off
//! until the configuration names a [`Mode`]: the model is told less than the session holds, and
//! where that matters (an audit, a look back for exact text) it should not be.

#![forbid(unsafe_code)]

mod config;
mod layer;
mod result;
mod scope;
mod tools;
mod ttl;

pub use config::{Config, HardClear, Mode, SoftTrim, Tools};
pub use layer::Pruning;
pub use result::IMAGE_REMOVED_NOTICE;
pub use ttl::Ttl;

#[cfg(feature = "register")]
mod register;

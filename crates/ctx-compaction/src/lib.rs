//! Layer 3: replaces old history, so that a session of any length goes on.
//!
//! What is here now is the last rung of the ladder, the *hard prune*: the newest history within a
//! share of the window stays, the rest is left out without a summary. It needs no model and cannot
//! fail.

#![forbid(unsafe_code)]

mod config;
mod hard_prune;

pub use config::{Config, MemoryFlush};
pub use hard_prune::{HardPrune, HardPrunePlan, SAFETY_MARGIN, plan_hard_prune};

#[cfg(feature = "register")]
mod register;

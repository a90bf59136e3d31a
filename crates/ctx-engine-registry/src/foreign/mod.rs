//! Foreign engines: sending them the state of a session, and validating their answers.
//!
//! [`SupervisedEngine`] is the [`ContextEngine`](ctx_core::ContextEngine) that hosts see. It starts
//! an [`EngineClient`] over a [`Channel`] and sends it the changes of a
//! [`ContextView`](ctx_core::ContextView) ([`ViewSync`]). The answer is [checked](check()) against
//! the view before it takes effect, and then [applied](apply()). An answer that would break the
//! session is a [`Rejection`]; a missing answer is a [`Fault`](transport::Fault). In both cases the
//! default engine serves the turn from the unchanged view.

mod apply;
mod check;
mod client;
mod compaction;
mod connection;
mod context_engine;
mod error;
mod health;
mod installed;
mod lease;
mod live;
mod message;
mod rejection;
mod sessions;
mod supervised;
mod sync;
pub mod transport;

pub use apply::apply;
pub use check::{CheckContext, CheckedPlan, EstimateOff, check};
pub use client::EngineClient;
use compaction::CompactionOutcome;
pub use connection::{Channel, Launcher};
pub use error::EngineError;
pub(crate) use installed::InstalledEngine;
pub use rejection::Rejection;
pub use supervised::{EngineSpec, SupervisedEngine};
pub use sync::{SyncOptions, ViewSync};

//! The lifecycle of a session: when it is reset, and how long it is kept.

mod amount;
mod config;
mod policy;
mod resets;
mod subagents;
#[cfg(test)]
mod tests;

pub use amount::{Age, Bytes};
pub use config::{Maintenance, MaintenanceMode, Reset, ResetMode, Retention, SessionConfig};
pub use policy::{Lifecycle, NeverReset, SessionTimes};
pub use resets::Resets;

pub(crate) use subagents::SubagentConfig;

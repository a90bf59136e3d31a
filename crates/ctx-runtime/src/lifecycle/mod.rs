//! The life of a session: when it begins anew, how long it is kept, and what becomes of it then.

mod amount;
mod config;
mod maintenance;
mod resets;
#[cfg(test)]
mod tests;
mod upkeep;

pub use amount::{Age, Bytes};
pub use config::{Maintenance, MaintenanceMode, Reset, ResetMode, Retention, SessionConfig};
pub use maintenance::{Act, Kept, Maintained, MaintenanceReport, Why, maintain};
pub use resets::Resets;

pub(crate) use maintenance::Run;
pub(crate) use upkeep::{Due, Job, Upkeep};

//! Output of programs: errors and their causes, logs, listings, stack frames.

mod cause;
mod lines;
mod pasted;

pub use cause::{plain_cause, root_cause};
pub(crate) use lines::is_listed;
pub use lines::{is_foreign, is_frame, is_rejection};
pub(crate) use pasted::Pasted;

//! Output of programs: errors and their causes, totals, logs, listings, stack frames.

mod cause;
mod lines;
mod outcome;
mod pasted;

pub use cause::{plain_cause, root_cause};
pub(crate) use lines::{escaped_breaks, is_data, is_listed};
pub use lines::{is_foreign, is_frame};
pub use outcome::{is_rejection, says_failed, totals};
pub(crate) use pasted::Pasted;

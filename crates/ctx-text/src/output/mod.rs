//! Output of programs: errors and their causes, totals, logs, listings, stack frames.

mod cause;
mod lines;
mod outcome;
mod pasted;

pub use cause::{is_error, plain_cause, root_cause};
pub use lines::{is_data, is_foreign, is_frame, prose_lines};
pub use outcome::{is_rejection, says_failed, totals};
pub use pasted::Pasted;

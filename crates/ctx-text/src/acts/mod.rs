//! What a sentence does: demands, decides, asks, reports, announces, or only greets.

mod courtesy;
mod marks;
mod signal;
mod step;
mod words;

pub use courtesy::{is_courtesy, is_name};
pub use marks::{Marks, marks};
pub use signal::{Signal, is_assent};
pub use step::{is_asked_about, is_step, is_task};

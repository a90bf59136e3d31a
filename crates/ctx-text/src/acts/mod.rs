//! What a sentence does: demands, decides, asks, reports, announces, or only greets.

mod courtesy;
mod cues;
mod marks;
mod signal;
mod step;

pub use courtesy::{is_courtesy, is_name};
pub use marks::{Marks, marks};
pub use signal::{Signal, is_assent};
pub use step::{is_step, is_task};

//! What a model answered: made harmless, and judged.

mod clean;
mod judge;

pub(crate) use clean::{cleaned, harmless};
pub(crate) use judge::{Flaw, checked};

//! What a model answered: made harmless, and judged.

mod clean;
mod echo;
mod judge;

use clean::visible;
pub(crate) use clean::{cleaned, harmless};
pub(crate) use judge::{Flaw, checked};

//! Cleans and checks a model's answer.

mod clean;
mod echo;
mod judge;

use clean::visible;
pub(crate) use clean::{cleaned, sanitised};
pub(crate) use judge::{Flaw, checked, telling};

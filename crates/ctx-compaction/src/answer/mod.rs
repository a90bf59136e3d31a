//! Cleans and checks a model's answer.

mod clean;
mod echo;
mod judge;

pub(crate) use clean::{cleaned, sanitised};
pub(crate) use judge::{Flaw, checked};

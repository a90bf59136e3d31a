//! Commands that were run: which of them mattered, how they ended, and why they failed.

pub(crate) mod cause;
pub(crate) mod command;
pub(crate) mod outcome;
mod pasted;

pub(crate) use cause::{plain_cause, root_cause};
pub(crate) use pasted::Pasted;

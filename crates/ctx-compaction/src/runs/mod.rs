//! Commands that were run: their purpose, their outcome, and the causes of failures.

pub(crate) mod cause;
pub(crate) mod command;
pub(crate) mod outcome;
mod pasted;

pub(crate) use cause::{plain_cause, root_cause};
pub(crate) use pasted::Pasted;

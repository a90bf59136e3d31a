//! Warnings, each reported once.

use std::collections::HashSet;

/// The maximum number of different warnings.
const MOST: usize = 32;

#[derive(Debug, Default)]
pub(crate) struct Warnings {
    pending: Vec<String>,
    said: HashSet<String>,
}

impl Warnings {
    pub(crate) fn push(&mut self, warning: String) {
        if self.said.len() < MOST && self.said.insert(warning.clone()) {
            self.pending.push(warning);
        }
    }

    pub(crate) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.pending)
    }
}

//! Warnings of a layer, each reported once.

use std::collections::HashSet;

/// The maximum number of different warnings.
const MOST: usize = 32;

/// Warnings, each reported once: at most 32 different ones.
#[derive(Debug, Default)]
pub struct Warnings {
    pending: Vec<String>,
    said: HashSet<String>,
}

impl Warnings {
    /// Adds a warning, unless it was added before.
    pub fn push(&mut self, warning: String) {
        if self.said.len() < MOST && self.said.insert(warning.clone()) {
            self.pending.push(warning);
        }
    }

    /// Returns the warnings that were added since the last call.
    pub fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.pending)
    }
}

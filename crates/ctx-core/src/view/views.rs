//! What a layer remembers of each view.

use super::{ContextView, ViewId};

/// The number of views remembered. A host uses few views at once; the least recently used is
/// dropped.
const REMEMBERED: usize = 32;

/// The state of a layer for each of the 32 views that it saw last.
#[derive(Debug)]
pub struct Views<T>(
    /// Least recently used first.
    Vec<(ViewId, T)>,
);

impl<T: Default> Views<T> {
    /// Returns the state of a view.
    pub fn of(&mut self, view: &ContextView) -> &mut T {
        self.of_or(view, |_| T::default())
    }

    /// Like [`of`](Self::of); `make` makes the state of a new view from the states of the others,
    /// in the order of last use.
    pub fn of_or(&mut self, view: &ContextView, make: impl FnOnce(&[(ViewId, T)]) -> T) -> &mut T {
        let known = self.0.iter().position(|(id, _)| id == view.id());
        let entry = match known {
            Some(at) => self.0.remove(at),
            None => (view.id().clone(), make(&self.0)),
        };
        if self.0.len() >= REMEMBERED {
            self.0.remove(0);
        }
        self.0.push(entry);
        let last = self.0.len() - 1;
        &mut self.0[last].1
    }
}

impl<T> Default for Views<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

//! The progress indicator, which is hidden during a question to the user.

use std::sync::{Arc, Mutex, PoisonError};

use indicatif::ProgressBar;

/// Shared between the display and questions.
#[derive(Clone, Default)]
pub(crate) struct Spinner {
    bar: Arc<Mutex<Option<ProgressBar>>>,
}

impl Spinner {
    /// Replaces the indicator.
    pub(super) fn show(&self, bar: ProgressBar) {
        self.set(Some(bar));
    }

    /// Removes the indicator.
    pub(super) fn clear(&self) {
        self.set(None);
    }

    fn set(&self, bar: Option<ProgressBar>) {
        let shown = std::mem::replace(&mut *self.bar(), bar);
        if let Some(shown) = shown {
            shown.finish_and_clear();
        }
    }

    fn bar(&self) -> std::sync::MutexGuard<'_, Option<ProgressBar>> {
        self.bar.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `act` while the indicator is hidden, then restarts its elapsed time at zero.
    pub(super) fn beside<T>(&self, act: impl FnOnce() -> T) -> T {
        let Some(bar) = self.bar().clone() else { return act() };
        let done = bar.suspend(act);
        bar.reset_elapsed();
        done
    }

    /// Returns the text shown.
    #[cfg(test)]
    pub(super) fn words(&self) -> Option<String> {
        self.bar().as_ref().map(|bar| bar.message())
    }
}

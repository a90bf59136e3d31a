//! The sign that something is going on, which makes room where a person is asked something.

use std::sync::{Arc, Mutex, PoisonError};

use indicatif::ProgressBar;

/// It is shared by who shows it and who asks.
#[derive(Clone, Default)]
pub(crate) struct Sign {
    bar: Arc<Mutex<Option<ProgressBar>>>,
}

impl Sign {
    /// Shows this in the place of what was shown.
    pub(super) fn show(&self, bar: ProgressBar) {
        self.set(Some(bar));
    }

    /// Shows nothing any more.
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

    /// Does something at the terminal while nothing is shown there. The time that it takes is none of
    /// what goes on.
    pub(super) fn beside<T>(&self, act: impl FnOnce() -> T) -> T {
        let Some(bar) = self.bar().clone() else { return act() };
        let done = bar.suspend(act);
        bar.reset_elapsed();
        done
    }

    /// What is shown.
    #[cfg(test)]
    pub(super) fn words(&self) -> Option<String> {
        self.bar().as_ref().map(|bar| bar.message())
    }
}

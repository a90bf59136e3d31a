//! The daily budget for extracting facts, shared by all processes of an agent.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ctx_core::{ErrorKind, Result, Timestamp};

use super::{DailySpend, Spent};
use crate::disk::{self, FileLock};

/// Where the spent budget is kept.
#[derive(Debug)]
pub(crate) enum SpendLedger {
    /// In this process only.
    InMemory(Mutex<DailySpend>),
    /// In a file that all processes of an agent share.
    File(PathBuf),
}

/// The exclusive right to spend, so that no two processes spend the same budget.
#[derive(Debug)]
pub(crate) struct SpendGuard {
    ledger: Arc<SpendLedger>,
    _lock: Option<FileLock>,
    budget: DailySpend,
}

impl SpendLedger {
    /// Takes the right to spend; returns `None` while another process has it.
    ///
    /// # Errors
    ///
    /// If the file cannot be locked, or exists and cannot be read.
    pub(crate) fn open(self: &Arc<Self>, now: Timestamp) -> Result<Option<SpendGuard>> {
        let (lock, budget) = match &**self {
            Self::InMemory(budget) => {
                (None, *budget.lock().unwrap_or_else(PoisonError::into_inner))
            }
            Self::File(path) => {
                disk::create_private_dir(disk::parent(path))?;
                let lock = match FileLock::with_timeout(path, Duration::ZERO) {
                    Err(error) if error.kind() == ErrorKind::Locked => return Ok(None),
                    lock => lock?,
                };
                let text = match disk::read(path) {
                    Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
                    read => read
                        .map_err(|e| disk::io_error("cannot read the budget for facts", path, e))?,
                };
                // A damaged file is reset: it held only one day's numbers.
                (Some(lock), serde_json::from_slice(&text).unwrap_or_default())
            }
        };
        Ok(Some(SpendGuard { ledger: self.clone(), _lock: lock, budget: budget.at(now) }))
    }
}

impl SpendGuard {
    /// Returns the right to spend in this process only, from nothing.
    pub(crate) fn in_memory() -> Self {
        let ledger = Arc::new(SpendLedger::InMemory(Mutex::default()));
        Self { ledger, _lock: None, budget: DailySpend::default() }
    }

    /// Returns the spending of this day.
    pub(crate) fn budget(&self) -> DailySpend {
        self.budget
    }

    /// Records the expected price of a call before it is made, so that a call that never returns is
    /// counted too.
    pub(crate) fn expect(&mut self, usd: f64) -> Result<()> {
        let mut budget = self.budget;
        budget.add(Spent { calls: 1, usd });
        self.keep(budget)
    }

    /// Replaces the expected price of a call by the price paid.
    pub(crate) fn settle(&mut self, expected: f64, paid: f64) -> Result<()> {
        let mut budget = self.budget;
        budget.correct(expected, paid);
        if budget == self.budget { Ok(()) } else { self.keep(budget) }
    }

    fn keep(&mut self, budget: DailySpend) -> Result<()> {
        match &*self.ledger {
            SpendLedger::InMemory(held) => {
                *held.lock().unwrap_or_else(PoisonError::into_inner) = budget;
            }
            SpendLedger::File(path) => disk::replace(path, |out| {
                serde_json::to_writer(out, &budget).map_err(std::io::Error::from)
            })?,
        }
        self.budget = budget;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_770_000_000_000);

    fn opened(ledger: &Arc<SpendLedger>, now: Timestamp) -> SpendGuard {
        ledger.open(now).unwrap().unwrap()
    }

    fn spent(ledger: &Arc<SpendLedger>, now: Timestamp) -> Spent {
        ledger.open(now).unwrap().unwrap().budget().spent
    }

    #[test]
    fn processes_share_the_spent_budget_and_never_spend_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = || Arc::new(SpendLedger::File(dir.path().join("deep/budget.json")));
        let one = ledger();
        let mut spending = opened(&one, NOW);
        spending.expect(0.25).unwrap();
        assert!(ledger().open(NOW).unwrap().is_none(), "another one has it");
        drop(spending);
        let again = ledger();
        assert_eq!(spent(&again, NOW), Spent { calls: 1, usd: 0.25 }, "nobody said what it cost");
        let mut spending = opened(&one, NOW);
        spending.expect(0.25).unwrap();
        spending.settle(0.25, 0.5).unwrap();
        spending.expect(0.25).unwrap();
        spending.settle(0.25, 0.0).unwrap();
        drop(spending);
        assert_eq!(spent(&again, NOW), Spent { calls: 3, usd: 0.75 });
        let tomorrow = Timestamp(NOW.0 + 24 * 60 * 60 * 1_000);
        assert_eq!(spent(&again, tomorrow), Spent::default());
    }

    #[test]
    fn a_damaged_file_is_reset() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("budget.json");
        std::fs::write(&path, "{\"day\": 7, \"sp").unwrap();
        let ledger = Arc::new(SpendLedger::File(path));
        assert_eq!(spent(&ledger, NOW), Spent::default());
        opened(&ledger, NOW).expect(0.0).unwrap();
        assert_eq!(spent(&ledger, NOW).calls, 1);
    }

    #[test]
    fn an_unreadable_file_allows_no_spending() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("budget.json");
        std::fs::create_dir(&path).unwrap();
        let error = Arc::new(SpendLedger::File(path)).open(NOW).unwrap_err();
        assert!(error.hint_text().is_some(), "{error}");
    }
}

//! What was spent on finding facts, for all processes of an agent.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ctx_core::{ErrorKind, Result, Timestamp};

use super::model::Accounts;
use super::{Budget, Spent};
use crate::disk::{self, FileLock};

/// Where it is kept of what was spent on a day.
#[derive(Debug)]
pub(crate) enum Purse {
    /// In this process alone.
    Held(Mutex<Budget>),
    /// In a file that all processes of an agent share.
    File(PathBuf),
}

/// The right to spend: nobody else has it meanwhile, so that no two spend the same.
#[derive(Debug)]
pub(crate) struct Spending {
    purse: Arc<Purse>,
    _lock: Option<FileLock>,
    budget: Budget,
}

impl Purse {
    /// Takes the right to spend; `None` while another process has it.
    ///
    /// # Errors
    ///
    /// Where the file cannot be locked, or is there and cannot be read.
    pub(crate) fn open(self: &Arc<Self>, now: Timestamp) -> Result<Option<Spending>> {
        let (lock, budget) = match &**self {
            Self::Held(budget) => (None, *budget.lock().unwrap_or_else(PoisonError::into_inner)),
            Self::File(path) => {
                disk::create_private_dir(disk::parent(path))?;
                let lock = match FileLock::within(path, Duration::ZERO) {
                    Err(error) if error.kind() == ErrorKind::Locked => return Ok(None),
                    lock => lock?,
                };
                let text = match disk::read(path) {
                    Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
                    read => read.map_err(|e| {
                        disk::io_error("cannot read what was spent on facts", path, e)
                    })?,
                };
                // One that is damaged is begun anew: it held one day's numbers.
                (Some(lock), serde_json::from_slice(&text).unwrap_or_default())
            }
        };
        Ok(Some(Spending { purse: self.clone(), _lock: lock, budget: budget.at(now) }))
    }
}

impl Spending {
    /// What was spent on this day.
    pub(crate) fn budget(&self) -> Budget {
        self.budget
    }

    fn keep(&mut self, budget: Budget) -> Result<()> {
        match &*self.purse {
            Purse::Held(held) => *held.lock().unwrap_or_else(PoisonError::into_inner) = budget,
            Purse::File(path) => disk::replace(path, |out| {
                serde_json::to_writer(out, &budget).map_err(std::io::Error::from)
            })?,
        }
        self.budget = budget;
        Ok(())
    }
}

impl Accounts for Mutex<Spending> {
    fn expect(&self, usd: f64) -> Result<()> {
        let mut spending = self.lock().unwrap_or_else(PoisonError::into_inner);
        let mut budget = spending.budget;
        budget.add(Spent { calls: 1, usd });
        spending.keep(budget)
    }

    fn settle(&self, expected: f64, paid: f64) -> Result<()> {
        let mut spending = self.lock().unwrap_or_else(PoisonError::into_inner);
        let mut budget = spending.budget;
        budget.correct(expected, paid);
        if budget == spending.budget { Ok(()) } else { spending.keep(budget) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_770_000_000_000);

    fn opened(purse: &Arc<Purse>, now: Timestamp) -> Mutex<Spending> {
        Mutex::new(purse.open(now).unwrap().unwrap())
    }

    fn spent(purse: &Arc<Purse>, now: Timestamp) -> Spent {
        purse.open(now).unwrap().unwrap().budget().spent
    }

    #[test]
    fn what_one_process_spent_the_next_one_knows_and_two_never_spend_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let purse = || Arc::new(Purse::File(dir.path().join("deep/budget.json")));
        let one = purse();
        let spending = opened(&one, NOW);
        spending.expect(0.25).unwrap();
        assert!(purse().open(NOW).unwrap().is_none(), "another one has it");
        drop(spending);
        let again = purse();
        assert_eq!(spent(&again, NOW), Spent { calls: 1, usd: 0.25 }, "nobody said what it cost");
        let spending = opened(&one, NOW);
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
    fn a_damaged_file_is_begun_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("budget.json");
        std::fs::write(&path, "{\"day\": 7, \"sp").unwrap();
        let purse = Arc::new(Purse::File(path));
        assert_eq!(spent(&purse, NOW), Spent::default());
        opened(&purse, NOW).expect(0.0).unwrap();
        assert_eq!(spent(&purse, NOW).calls, 1);
    }

    #[test]
    fn a_file_that_cannot_be_read_opens_no_purse() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("budget.json");
        std::fs::create_dir(&path).unwrap();
        let error = Arc::new(Purse::File(path)).open(NOW).unwrap_err();
        assert!(error.hint_text().is_some(), "{error}");
    }
}

//! What was spent on finding facts, for all processes of an agent.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ctx_core::{ErrorKind, Result, Timestamp};

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
pub(crate) struct Spending<'a> {
    purse: &'a Purse,
    _lock: Option<FileLock>,
    budget: Budget,
}

impl Purse {
    /// Takes the right to spend; `None` while another process has it.
    ///
    /// # Errors
    ///
    /// Where the file cannot be locked.
    pub(crate) fn open(&self, now: Timestamp) -> Result<Option<Spending<'_>>> {
        let (lock, budget) = match self {
            Self::Held(budget) => (None, *budget.lock().unwrap_or_else(PoisonError::into_inner)),
            Self::File(path) => {
                disk::create_private_dir(disk::parent(path))?;
                let lock = match FileLock::within(path, Duration::ZERO) {
                    Err(error) if error.kind() == ErrorKind::Locked => return Ok(None),
                    lock => lock?,
                };
                // One that is damaged is begun anew: it held one day's numbers.
                let text = std::fs::read(path).unwrap_or_default();
                (Some(lock), serde_json::from_slice(&text).unwrap_or_default())
            }
        };
        Ok(Some(Spending { purse: self, _lock: lock, budget: budget.at(now) }))
    }
}

impl Spending<'_> {
    /// What was spent on this day.
    pub(crate) fn budget(&self) -> Budget {
        self.budget
    }

    /// Notes what is spent, and returns when no crash can take it back.
    ///
    /// # Errors
    ///
    /// Where it cannot be written: then nothing is to be spent.
    pub(crate) fn note(&mut self, spent: Spent) -> Result<()> {
        let mut budget = self.budget;
        budget.add(spent);
        match self.purse {
            Purse::Held(held) => *held.lock().unwrap_or_else(PoisonError::into_inner) = budget,
            Purse::File(path) => disk::replace(path, |out| {
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

    #[test]
    fn what_one_process_spent_the_next_one_knows_and_two_never_spend_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let purse = || Purse::File(dir.path().join("deep/budget.json"));
        let one = purse();
        let mut spending = one.open(NOW).unwrap().unwrap();
        spending.note(Spent { calls: 2, usd: 0.25 }).unwrap();
        assert!(purse().open(NOW).unwrap().is_none(), "another one has it");
        drop(spending);
        let again = purse();
        let spent = again.open(NOW).unwrap().unwrap().budget().spent;
        assert_eq!(spent, Spent { calls: 2, usd: 0.25 });
        let tomorrow = Timestamp(NOW.0 + 24 * 60 * 60 * 1_000);
        assert_eq!(again.open(tomorrow).unwrap().unwrap().budget().spent, Spent::default());
    }

    #[test]
    fn a_damaged_file_is_begun_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("budget.json");
        std::fs::write(&path, "{\"day\": 7, \"sp").unwrap();
        let purse = Purse::File(path);
        let mut spending = purse.open(NOW).unwrap().unwrap();
        assert_eq!(spending.budget().spent, Spent::default());
        spending.note(Spent { calls: 1, usd: 0.0 }).unwrap();
        drop(spending);
        assert_eq!(purse.open(NOW).unwrap().unwrap().budget().spent.calls, 1);
    }
}

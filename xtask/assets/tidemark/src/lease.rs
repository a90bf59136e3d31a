//! Who holds which job until when.

use std::collections::{BTreeSet, HashMap};

use crate::clock::now_ms;
use crate::job::JobId;

/// A worker's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WorkerId(pub u32);

/// The right of one worker to one job, for a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The job.
    pub job: JobId,
    /// Who holds it.
    pub holder: WorkerId,
    /// When it runs out, in milliseconds since the epoch.
    pub deadline: u64,
    /// Counts the leases of one job, so that a late `ACK` of an old one is told apart.
    pub generation: u32,
}

/// Why a lease cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseError {
    /// There is no lease for that job.
    Unknown,
    /// It belongs to another worker.
    NotYours,
    /// It has run out.
    Gone,
}

/// All leases that are out.
#[derive(Debug, Default)]
pub struct LeaseTable {
    by_job: HashMap<JobId, Lease>,
    by_deadline: BTreeSet<(u64, JobId)>,
    generations: HashMap<JobId, u32>,
}

impl LeaseTable {
    /// Leases `job` to `holder` for `ttl` milliseconds from now.
    pub fn grant(&mut self, job: JobId, holder: WorkerId, ttl: u64) -> Lease {
        let generation = self.generations.entry(job).or_insert(0);
        *generation += 1;
        let lease = Lease { job, holder, deadline: now_ms() + ttl, generation: *generation };
        self.by_deadline.insert((lease.deadline, job));
        self.by_job.insert(job, lease.clone());
        lease
    }

    /// Lengthens a lease: it then ends `ttl` milliseconds from now.
    pub fn extend(&mut self, job: JobId, holder: WorkerId, ttl: u64) -> Result<u64, LeaseError> {
        let lease = self.held(job, holder)?;
        if now_ms() >= lease.deadline {
            return Err(LeaseError::Gone);
        }
        let old = lease.deadline;
        let new = now_ms() + ttl;
        self.by_deadline.remove(&(old, job));
        self.by_deadline.insert((new, job));
        if let Some(lease) = self.by_job.get_mut(&job) {
            lease.deadline = new;
        }
        Ok(new)
    }

    /// Ends a lease because the work is done.
    pub fn release(&mut self, job: JobId, holder: WorkerId) -> Result<Lease, LeaseError> {
        let lease = self.held(job, holder)?;
        if now_ms() >= lease.deadline {
            return Err(LeaseError::Gone);
        }
        self.by_deadline.remove(&(lease.deadline, job));
        self.generations.remove(&job);
        self.by_job.remove(&job).ok_or(LeaseError::Unknown)
    }

    /// The jobs whose leases have run out. They stay in the table until `forget` is called.
    pub fn expired(&self) -> Vec<JobId> {
        self.by_deadline
            .iter()
            .take_while(|(deadline, _)| *deadline <= now_ms())
            .map(|(_, job)| *job)
            .collect()
    }

    /// Takes a lease out of the table, whoever holds it.
    pub fn forget(&mut self, job: JobId) -> Option<Lease> {
        let lease = self.by_job.remove(&job)?;
        self.by_deadline.remove(&(lease.deadline, job));
        Some(lease)
    }

    /// All leases of a worker, when its connection is lost.
    pub fn of_worker(&self, holder: WorkerId) -> Vec<JobId> {
        self.by_job.values().filter(|l| l.holder == holder).map(|l| l.job).collect()
    }

    /// When the next lease runs out.
    pub fn next_deadline(&self) -> Option<u64> {
        self.by_deadline.first().map(|(deadline, _)| *deadline)
    }

    /// How many are out.
    pub fn len(&self) -> usize {
        self.by_job.len()
    }

    /// Whether none is out.
    pub fn is_empty(&self) -> bool {
        self.by_job.is_empty()
    }

    fn held(&self, job: JobId, holder: WorkerId) -> Result<&Lease, LeaseError> {
        let lease = self.by_job.get(&job).ok_or(LeaseError::Unknown)?;
        if lease.holder == holder { Ok(lease) } else { Err(LeaseError::NotYours) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: WorkerId = WorkerId(1);
    const B: WorkerId = WorkerId(2);

    #[test]
    fn a_lease_belongs_to_its_worker() {
        let mut table = LeaseTable::default();
        table.grant(JobId(1), A, 60_000);
        assert_eq!(table.release(JobId(1), B), Err(LeaseError::NotYours));
        assert!(table.release(JobId(1), A).is_ok());
        assert_eq!(table.release(JobId(1), A), Err(LeaseError::Unknown));
    }

    #[test]
    fn leases_run_out_in_order() {
        let mut table = LeaseTable::default();
        table.grant(JobId(1), A, 30);
        table.grant(JobId(2), A, 10);
        table.grant(JobId(3), A, 60_000);
        std::thread::sleep(std::time::Duration::from_millis(40));
        assert_eq!(table.expired(), [JobId(2), JobId(1)]);
    }

    #[test]
    fn an_extended_lease_does_not_run_out() {
        let mut table = LeaseTable::default();
        table.grant(JobId(1), A, 20);
        table.extend(JobId(1), A, 60_000).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(30));
        assert!(table.expired().is_empty());
    }

    #[test]
    fn a_late_release_is_refused() {
        let mut table = LeaseTable::default();
        table.grant(JobId(1), A, 5);
        std::thread::sleep(std::time::Duration::from_millis(10));
        assert_eq!(table.release(JobId(1), A), Err(LeaseError::Gone));
    }
}

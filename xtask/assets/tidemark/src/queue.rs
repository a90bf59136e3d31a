//! The queue: ready jobs, leased jobs, dead jobs.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;

use crate::clock::now_ms;
use crate::config::Limits;
use crate::job::{Job, JobId, Priority};
use crate::lease::{Lease, LeaseError, LeaseTable, WorkerId};
use crate::store::{Record, Store, StoreError};

/// Why a command was refused.
#[derive(Debug)]
pub enum QueueError {
    /// The payload is longer than the limit.
    TooLarge { bytes: usize, limit: usize },
    /// The topic holds as many jobs as it may.
    Full { topic: Box<str>, limit: usize },
    /// The lease cannot be used.
    Lease(LeaseError),
    /// The log could not be written.
    Store(StoreError),
}

impl From<LeaseError> for QueueError {
    fn from(error: LeaseError) -> Self {
        Self::Lease(error)
    }
}

impl From<StoreError> for QueueError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// What the queue counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Jobs taken in.
    pub pushed: u64,
    /// Jobs handed out, repeats included.
    pub delivered: u64,
    /// Jobs done.
    pub acked: u64,
    /// Leases that ran out.
    pub expired: u64,
    /// Jobs given up.
    pub dead: u64,
}

/// All jobs of one server.
pub struct Queue {
    jobs: HashMap<JobId, Job>,
    ready: HashMap<Box<str>, BTreeSet<(Priority, JobId)>>,
    dead: BTreeMap<JobId, u64>,
    leases: LeaseTable,
    store: Store,
    limits: Limits,
    counters: Counters,
    next: u64,
}

impl Queue {
    /// Opens the queue in the store's folder and plays its log back.
    pub fn open(mut store: Store, limits: Limits) -> Result<Self, QueueError> {
        let records = store.recover()?;
        let mut queue = Self {
            jobs: HashMap::new(),
            ready: HashMap::new(),
            dead: BTreeMap::new(),
            leases: LeaseTable::default(),
            store,
            limits,
            counters: Counters::default(),
            next: 1,
        };
        for record in records {
            queue.replay(record);
        }
        Ok(queue)
    }

    /// Takes a job in. It is in the log when this returns.
    pub fn push(
        &mut self,
        topic: &str,
        priority: Priority,
        payload: Bytes,
        max_deliveries: u32,
    ) -> Result<JobId, QueueError> {
        if payload.len() > self.limits.payload_bytes {
            return Err(QueueError::TooLarge {
                bytes: payload.len(),
                limit: self.limits.payload_bytes,
            });
        }
        let waiting = self.ready.get(topic).map_or(0, BTreeSet::len);
        if waiting >= self.limits.jobs_per_topic {
            return Err(QueueError::Full { topic: topic.into(), limit: self.limits.jobs_per_topic });
        }
        let job = Job {
            id: JobId(self.next),
            topic: topic.into(),
            priority,
            payload,
            deliveries: 0,
            max_deliveries,
            pushed_at: now_ms(),
        };
        self.store.append(&Record::Push(job.clone()))?;
        self.next += 1;
        self.counters.pushed += 1;
        let id = job.id;
        self.make_ready(&job);
        self.jobs.insert(id, job);
        Ok(id)
    }

    /// Hands the most urgent ready job of `topic` to `worker` for `ttl` milliseconds.
    pub fn pull(
        &mut self,
        topic: &str,
        worker: WorkerId,
        ttl: u64,
    ) -> Result<Option<(Job, Lease)>, QueueError> {
        let Some(ready) = self.ready.get_mut(topic) else { return Ok(None) };
        let Some((_, id)) = ready.pop_first() else { return Ok(None) };
        let Some(job) = self.jobs.get_mut(&id) else { return Ok(None) };
        job.deliveries += 1;
        let job = job.clone();
        let lease = self.leases.grant(id, worker, ttl);
        self.store.append(&Record::Lease(lease.clone()))?;
        self.counters.delivered += 1;
        Ok(Some((job, lease)))
    }

    /// The work is done: the job is gone for good.
    pub fn ack(&mut self, id: JobId, worker: WorkerId) -> Result<(), QueueError> {
        self.leases.release(id, worker)?;
        self.store.append(&Record::Ack(id))?;
        self.jobs.remove(&id);
        self.counters.acked += 1;
        Ok(())
    }

    /// The work could not be done: the job is ready again, or dead.
    pub fn nack(&mut self, id: JobId, worker: WorkerId) -> Result<(), QueueError> {
        self.leases.release(id, worker)?;
        self.store.append(&Record::Nack(id))?;
        self.requeue(id);
        Ok(())
    }

    /// Lengthens a lease.
    pub fn extend(&mut self, id: JobId, worker: WorkerId, ttl: u64) -> Result<u64, QueueError> {
        let deadline = self.leases.extend(id, worker, ttl)?;
        self.store.append(&Record::Extend { job: id, deadline })?;
        Ok(deadline)
    }

    /// The jobs whose leases have run out and that the sweeper must put back.
    pub fn expired(&self) -> Vec<JobId> {
        self.leases.expired()
    }

    /// Puts one job back whose lease has run out.
    pub fn expire(&mut self, id: JobId) -> Result<(), QueueError> {
        if self.leases.forget(id).is_none() {
            return Ok(());
        }
        self.store.append(&Record::Expire(id))?;
        self.counters.expired += 1;
        self.requeue(id);
        Ok(())
    }

    /// A connection was lost: its jobs are ready again at once.
    pub fn drop_worker(&mut self, worker: WorkerId) -> Result<usize, QueueError> {
        let held = self.leases.of_worker(worker);
        let count = held.len();
        for id in held {
            self.expire(id)?;
        }
        Ok(count)
    }

    /// When the sweeper has to look again.
    pub fn next_deadline(&self) -> Option<u64> {
        self.leases.next_deadline()
    }

    /// What was counted since the start.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The age of the oldest ready job, in milliseconds.
    pub fn oldest_ready(&self) -> Option<u64> {
        let now = now_ms();
        self.ready
            .values()
            .flatten()
            .filter_map(|(_, id)| self.jobs.get(id))
            .map(|job| job.age(now))
            .max()
    }

    fn make_ready(&mut self, job: &Job) {
        self.ready.entry(job.topic.clone()).or_default().insert((job.priority, job.id));
    }

    fn requeue(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(&id).cloned() else { return };
        if job.is_exhausted() {
            self.counters.dead += 1;
            self.dead.insert(id, now_ms());
        } else {
            self.make_ready(&job);
        }
    }

    fn replay(&mut self, record: Record) {
        match record {
            Record::Push(job) => {
                self.next = self.next.max(job.id.0 + 1);
                self.make_ready(&job);
                self.jobs.insert(job.id, job);
            }
            Record::Lease(lease) => {
                if let Some(job) = self.jobs.get_mut(&lease.job) {
                    job.deliveries += 1;
                }
            }
            Record::Ack(id) => {
                if let Some(job) = self.jobs.remove(&id) {
                    if let Some(ready) = self.ready.get_mut(&job.topic) {
                        ready.remove(&(job.priority, id));
                    }
                }
            }
            Record::Nack(_) | Record::Extend { .. } | Record::Expire(_) => {}
        }
    }
}

//! Act three: the fix where the fault is.

use serde_json::json;

use crate::sample::agent::Agent;
use crate::sample::output::{Shell, cargo, git, runs};

const EXPIRED: &str =
    "    /// The jobs whose leases have run out. They stay in the table until `forget` is called.
    pub fn expired(&self) -> Vec<JobId> {
        self.by_deadline
            .iter()
            .take_while(|(deadline, _)| *deadline <= now_ms())
            .map(|(_, job)| *job)
            .collect()
    }

    /// Takes a lease out of the table, whoever holds it.
    pub fn forget(&mut self, job: JobId) -> Option<Lease> {
        let lease = self.by_job.remove(&job)?;";

const EXPIRED_NEW: &str = "    /// The leases that have run out at `now`, as job and generation. They stay in the table until
    /// `forget` is called with both: by then the job may have been leased again.
    pub fn expired(&self, now: u64) -> Vec<(JobId, u32)> {
        self.by_deadline
            .iter()
            .take_while(|(deadline, _)| *deadline <= now)
            .filter_map(|(_, job)| self.by_job.get(job))
            .map(|lease| (lease.job, lease.generation))
            .collect()
    }

    /// Takes a lease out of the table, if it is still that one.
    pub fn forget(&mut self, job: JobId, generation: u32) -> Option<Lease> {
        if self.by_job.get(&job)?.generation != generation {
            return None;
        }
        let lease = self.by_job.remove(&job)?;";

pub(super) fn play(agent: &mut Agent) {
    agent.user(
        "OK, leave tokio's clock alone. Do it like this: time comes in as an argument, `now: u64`, from the edge. No Clock trait, no generics, I don't \
         want a trait object in the hot path. And compare the generation. Start with lease.rs.",
    );
    agent
        .step()
        .think(
            "Decision by the person: pass `now: u64`. Keep it plain. lease.rs: grant, extend, release, expired take now; forget takes the generation. \
             generations map is removed on release: then the next grant of the same job... cannot happen, the job is gone after ack; but nack also \
             releases, and then the generation restarts at 1! A stale list could match again. So nack must not reset it. Note that.",
        )
        .say("Agreed: `now: u64` as an argument, no trait. One more thing I saw: `release` forgets the generation, and `nack` uses `release`, so the count would start again at 1. That must go too.")
        .edit("src/lease.rs", EXPIRED, EXPIRED_NEW)
        .edit(
            "src/lease.rs",
            "    pub fn grant(&mut self, job: JobId, holder: WorkerId, ttl: u64) -> Lease {",
            "    pub fn grant(&mut self, job: JobId, holder: WorkerId, ttl: u64, now: u64) -> Lease {",
        )
        .edit("src/lease.rs", "deadline: now_ms() + ttl, generation", "deadline: now + ttl, generation")
        .go();
    agent
        .step()
        .edit(
            "src/lease.rs",
            "    pub fn extend(&mut self, job: JobId, holder: WorkerId, ttl: u64) -> Result<u64, LeaseError> {\n        let lease = self.held(job, holder)?;\n        if now_ms() >= lease.deadline {",
            "    pub fn extend(\n        &mut self,\n        job: JobId,\n        holder: WorkerId,\n        ttl: u64,\n        now: u64,\n    ) -> Result<u64, LeaseError> {\n        let lease = self.held(job, holder)?;\n        if now >= lease.deadline {",
        )
        .edit("src/lease.rs", "        let new = now_ms() + ttl;", "        let new = now + ttl;")
        .edit(
            "src/lease.rs",
            "    /// Ends a lease because the work is done.\n    pub fn release(&mut self, job: JobId, holder: WorkerId) -> Result<Lease, LeaseError> {\n        let lease = self.held(job, holder)?;\n        if now_ms() > lease.deadline {",
            "",
        )
        .go();
    agent
        .step()
        .think("The third edit did not match: the file has `>=`. Good that the tool is strict. Read that part again.")
        .say("The last one did not match. Looking at the exact text.")
        .read_part("src/lease.rs", 62, 34)
        .go();
    agent
        .step()
        .edit(
            "src/lease.rs",
            "    /// Ends a lease because the work is done.\n    pub fn release(&mut self, job: JobId, holder: WorkerId) -> Result<Lease, LeaseError> {\n        let lease = self.held(job, holder)?;\n        if now_ms() >= lease.deadline {\n            return Err(LeaseError::Gone);\n        }\n        self.by_deadline.remove(&(lease.deadline, job));\n        self.generations.remove(&job);\n",
            "    /// Ends a lease because the work is done, or cannot be. The count of generations goes on: it\n    /// ends with the job, in `retire`.\n    pub fn release(\n        &mut self,\n        job: JobId,\n        holder: WorkerId,\n        now: u64,\n    ) -> Result<Lease, LeaseError> {\n        let lease = self.held(job, holder)?;\n        if now >= lease.deadline {\n            return Err(LeaseError::Gone);\n        }\n        self.by_deadline.remove(&(lease.deadline, job));\n",
        )
        .edit(
            "src/lease.rs",
            "    /// All leases of a worker, when its connection is lost.\n    pub fn of_worker(&self, holder: WorkerId) -> Vec<JobId> {\n        self.by_job.values().filter(|l| l.holder == holder).map(|l| l.job).collect()\n    }",
            "    /// All leases of a worker, when its connection is lost.\n    pub fn of_worker(&self, holder: WorkerId) -> Vec<(JobId, u32)> {\n        self.by_job\n            .values()\n            .filter(|l| l.holder == holder)\n            .map(|l| (l.job, l.generation))\n            .collect()\n    }\n\n    /// The job is gone for good: its generations need not be counted any more.\n    pub fn retire(&mut self, job: JobId) {\n        self.generations.remove(&job);\n    }",
        )
        .edit("src/lease.rs", "use crate::clock::now_ms;\n", "")
        .go();
    let faults = cargo::errors(
        &agent.ws,
        &[
            (
                "src/queue.rs",
                "self.leases.grant(id, worker, ttl)",
                "E0061",
                "this method takes 4 arguments but 3 arguments were supplied",
                "argument #4 of type `u64` is missing",
            ),
            (
                "src/queue.rs",
                "self.leases.release(id, worker)?",
                "E0061",
                "this method takes 3 arguments but 2 arguments were supplied",
                "argument #3 of type `u64` is missing",
            ),
            (
                "src/queue.rs",
                "self.leases.extend(id, worker, ttl)",
                "E0061",
                "this method takes 4 arguments but 3 arguments were supplied",
                "argument #4 of type `u64` is missing",
            ),
            (
                "src/queue.rs",
                "self.leases.expired()",
                "E0061",
                "this method takes 1 argument but 0 arguments were supplied",
                "argument #1 of type `u64` is missing",
            ),
            (
                "src/queue.rs",
                "self.leases.forget(id)",
                "E0061",
                "this method takes 2 arguments but 1 argument was supplied",
                "argument #2 of type `u32` is missing",
            ),
            (
                "src/queue.rs",
                "self.expire(id)?;",
                "E0308",
                "mismatched types",
                "expected `JobId`, found `(JobId, u32)`",
            ),
        ],
    );
    agent
        .step()
        .say("`lease.rs` is done; the compiler now lists what calls it.")
        .bash("cargo check 2>&1", faults)
        .go();
    queue(agent);
    agent.user(
        "wait, before you go on: in drop_worker use the generation as well, same problem there",
    );
    agent
        .step()
        .say("It does already: `of_worker` gives the generation and `drop_worker` hands it on. Sweeper next.")
        .edit(
            "src/server/sweeper.rs",
            "        let due = queue.lock().await.expired();\n        for id in due {\n            let mut queue = queue.lock().await;\n            match queue.expire(id) {\n                Ok(()) => debug!(%id, \"lease ran out\"),",
            "        let due = queue.lock().await.expired(clock::now_ms());\n        for (id, generation) in due {\n            let mut queue = queue.lock().await;\n            match queue.expire(id, generation, clock::now_ms()) {\n                Ok(true) => debug!(%id, generation, \"lease ran out\"),\n                Ok(false) => trace!(%id, generation, \"leased again meanwhile\"),",
        )
        .edit(
            "src/commands/pull.rs",
            "for id in queue.expired() {\n            if let Err(error) = queue.expire(id) {",
            "for (id, generation) in queue.expired(started) {\n            if let Err(error) = queue.expire(id, generation, started) {",
        )
        .go();
    tests(agent);
}

fn queue(agent: &mut Agent) {
    agent
        .step()
        .edit("src/queue.rs", "let lease = self.leases.grant(id, worker, ttl);", "let lease = self.leases.grant(id, worker, ttl, now);")
        .edit(
            "src/queue.rs",
            "        worker: WorkerId,\n        ttl: u64,\n    ) -> Result<Option<(Job, Lease)>, QueueError> {",
            "        worker: WorkerId,\n        ttl: u64,\n        now: u64,\n    ) -> Result<Option<(Job, Lease)>, QueueError> {",
        )
        .edit(
            "src/queue.rs",
            "    pub fn ack(&mut self, id: JobId, worker: WorkerId) -> Result<(), QueueError> {\n        self.leases.release(id, worker)?;\n        self.store.append(&Record::Ack(id))?;\n",
            "    pub fn ack(&mut self, id: JobId, worker: WorkerId, now: u64) -> Result<(), QueueError> {\n        self.leases.release(id, worker, now)?;\n        self.leases.retire(id);\n        self.store.append(&Record::Ack(id))?;\n",
        )
        .edit(
            "src/queue.rs",
            "    pub fn nack(&mut self, id: JobId, worker: WorkerId) -> Result<(), QueueError> {\n        self.leases.release(id, worker)?;\n        self.store.append(&Record::Nack(id))?;\n        self.requeue(id);\n",
            "    pub fn nack(&mut self, id: JobId, worker: WorkerId, now: u64) -> Result<(), QueueError> {\n        self.leases.release(id, worker, now)?;\n        self.store.append(&Record::Nack(id))?;\n        self.requeue(id, now);\n",
        )
        .go();
    agent
        .step()
        .edit(
            "src/queue.rs",
            "    pub fn expired(&self) -> Vec<JobId> {\n        self.leases.expired()\n    }\n\n    /// Puts one job back whose lease has run out.\n    pub fn expire(&mut self, id: JobId) -> Result<(), QueueError> {\n        if self.leases.forget(id).is_none() {\n            return Ok(());\n        }\n        self.store.append(&Record::Expire(id))?;\n        self.counters.expired += 1;\n        self.requeue(id);\n        Ok(())\n    }",
            "    pub fn expired(&self, now: u64) -> Vec<(JobId, u32)> {\n        self.leases.expired(now)\n    }\n\n    /// Puts one job back whose lease has run out. `false` if that lease is not out any more, which\n    /// is so when the job was leased again after `expired` was asked.\n    pub fn expire(&mut self, id: JobId, generation: u32, now: u64) -> Result<bool, QueueError> {\n        if self.leases.forget(id, generation).is_none() {\n            return Ok(false);\n        }\n        self.store.append(&Record::Expire(id))?;\n        self.counters.expired += 1;\n        self.requeue(id, now);\n        Ok(true)\n    }",
        )
        .edit(
            "src/queue.rs",
            "    pub fn drop_worker(&mut self, worker: WorkerId) -> Result<usize, QueueError> {\n        let held = self.leases.of_worker(worker);\n        let count = held.len();\n        for id in held {\n            self.expire(id)?;\n        }",
            "    pub fn drop_worker(&mut self, worker: WorkerId, now: u64) -> Result<usize, QueueError> {\n        let held = self.leases.of_worker(worker);\n        let count = held.len();\n        for (id, generation) in held {\n            self.expire(id, generation, now)?;\n        }",
        )
        .edit(
            "src/queue.rs",
            "    pub fn extend(&mut self, id: JobId, worker: WorkerId, ttl: u64) -> Result<u64, QueueError> {\n        let deadline = self.leases.extend(id, worker, ttl)?;",
            "    pub fn extend(\n        &mut self,\n        id: JobId,\n        worker: WorkerId,\n        ttl: u64,\n        now: u64,\n    ) -> Result<u64, QueueError> {\n        let deadline = self.leases.extend(id, worker, ttl, now)?;",
        )
        .edit(
            "src/queue.rs",
            "    fn requeue(&mut self, id: JobId) {",
            "    fn requeue(&mut self, id: JobId, now: u64) {",
        )
        .edit("src/queue.rs", "self.dead.insert(id, now_ms());", "self.dead.insert(id, now);")
        .go();
    agent
        .step()
        .think("oldest_ready and push also read the clock. push needs now for pushed_at, oldest_ready for the age. Same treatment.")
        .edit(
            "src/queue.rs",
            "    pub fn oldest_ready(&self) -> Option<u64> {\n        let now = now_ms();\n",
            "    pub fn oldest_ready(&self, now: u64) -> Option<u64> {\n",
        )
        .edit(
            "src/queue.rs",
            "        payload: Bytes,\n        max_deliveries: u32,\n    ) -> Result<JobId, QueueError> {",
            "        payload: Bytes,\n        max_deliveries: u32,\n        now: u64,\n    ) -> Result<JobId, QueueError> {",
        )
        .edit("src/queue.rs", "            pushed_at: now_ms(),", "            pushed_at: now,")
        .edit("src/queue.rs", "use crate::clock::now_ms;\n", "")
        .go();
}

fn tests(agent: &mut Agent) {
    agent
        .step()
        .think("The tests of lease.rs sleep, which AGENTS.md forbids. With now as an argument they need not. And a new one for the bug itself: list, lease again, forget with the old generation.")
        .say("Now the tests in `lease.rs`: they sleep, against AGENTS.md, and need not any more. And one for the bug itself.")
        .edit(
            "src/lease.rs",
            "        let mut table = LeaseTable::default();\n        table.grant(JobId(1), A, 30);\n        table.grant(JobId(2), A, 10);\n        table.grant(JobId(3), A, 60_000);\n        std::thread::sleep(std::time::Duration::from_millis(40));\n        assert_eq!(table.expired(), [JobId(2), JobId(1)]);",
            "        let mut table = LeaseTable::default();\n        table.grant(JobId(1), A, 30, 1_000);\n        table.grant(JobId(2), A, 10, 1_000);\n        table.grant(JobId(3), A, 60_000, 1_000);\n        assert_eq!(table.expired(1_009), []);\n        assert_eq!(table.expired(1_030), [(JobId(2), 1), (JobId(1), 1)]);",
        )
        .edit(
            "src/lease.rs",
            "        table.grant(JobId(1), A, 20);\n        table.extend(JobId(1), A, 60_000).unwrap();\n        std::thread::sleep(std::time::Duration::from_millis(30));\n        assert!(table.expired().is_empty());",
            "        table.grant(JobId(1), A, 20, 1_000);\n        table.extend(JobId(1), A, 60_000, 1_010).unwrap();\n        assert!(table.expired(1_030).is_empty());",
        )
        .edit(
            "src/lease.rs",
            "        table.grant(JobId(1), A, 5);\n        std::thread::sleep(std::time::Duration::from_millis(10));\n        assert_eq!(table.release(JobId(1), A), Err(LeaseError::Gone));\n    }",
            "        table.grant(JobId(1), A, 5, 1_000);\n        assert_eq!(table.release(JobId(1), A, 1_005), Err(LeaseError::Gone));\n    }\n\n    #[test]\n    fn a_stale_list_does_not_end_a_new_lease() {\n        let mut table = LeaseTable::default();\n        table.grant(JobId(1), A, 10, 1_000);\n        let stale = table.expired(1_010);\n        assert_eq!(stale, [(JobId(1), 1)]);\n        // Somebody else puts it back and leases it again before the list is worked off.\n        assert!(table.forget(JobId(1), 1).is_some());\n        table.grant(JobId(1), B, 60_000, 1_011);\n        assert_eq!(table.forget(JobId(1), stale[0].1), None);\n        assert!(table.release(JobId(1), B, 1_012).is_ok());\n    }",
        )
        .go();
    agent
        .step()
        .edit(
            "src/lease.rs",
            "        table.grant(JobId(1), A, 60_000);\n        assert_eq!(table.release(JobId(1), B), Err(LeaseError::NotYours));\n        assert!(table.release(JobId(1), A).is_ok());\n        assert_eq!(table.release(JobId(1), A), Err(LeaseError::Unknown));",
            "        table.grant(JobId(1), A, 60_000, 1_000);\n        assert_eq!(table.release(JobId(1), B, 1_001), Err(LeaseError::NotYours));\n        assert!(table.release(JobId(1), A, 1_001).is_ok());\n        assert_eq!(table.release(JobId(1), A, 1_001), Err(LeaseError::Unknown));",
        )
        .edit(
            "src/server/conn.rs",
            "    let back = queue.lock().await.drop_worker(worker);",
            "    let back = queue.lock().await.drop_worker(worker, crate::clock::now_ms());",
        )
        .go();
    let diff = git::diff(&agent.ws, "src/");
    agent
        .step()
        .say("Everything I changed so far, to look it over myself:")
        .bash("git diff src/", Shell::ok(diff))
        .go();
    agent.bash("git status --short", &git::status(&agent.ws), false);
    agent.user("the diff is fine. one worry: u32 for generation, can that overflow?");
    let answer = agent.answer(
        "Not in practice: 4 billion leases of *one* job. And `max_deliveries` ends most jobs long before. I'd leave it.",
    );
    agent.rec.entry("label", json!({ "targetId": answer, "label": "core fix reviewed" }));
    let repeated = runs::repeated(200, &[], &mut agent.random);
    agent.user("then run it 200 times again");
    agent
        .step()
        .bash(
            "sh scripts/repeat.sh 200 redelivery_happens_once",
            Shell::failed("sh: 0: cannot open scripts/repeat.sh: No such file\n", 2),
        )
        .go();
    agent
        .step()
        .say("There is no such script; the loop by hand.")
        .bash("for i in $(seq 200); do cargo test --quiet --test redelivery redelivery_happens_once || echo FAILED; done", Shell::ok(repeated))
        .go();
    agent.answer("0 of 200, against 5 of 200 before. The other command files still call the old signatures; they are next.");
}

//! Act seven: the night's soak test, and a second fault behind the first.

use crate::sample::agent::Agent;
use crate::sample::output::{Shell, bench, cargo, git, runs};

pub(super) fn play(agent: &mut Agent) {
    agent.pause(23);
    agent.user(
        "CI is green on all three systems. The soak test is not: after a restart a few jobs that were leased are never delivered again. Same branch. Is that ours? Look at the log of the last seconds before the restart.",
    );
    let trace = runs::trace(300, &mut agent.random);
    agent
        .step()
        .think("After a restart: replay. Queue::replay puts Push into ready, Lease increments deliveries but leaves the job in ready... so a leased job is ready at once after a restart. Nack, Expire: nothing. Hmm, never delivered again: what takes it out of ready? Let me read before guessing.")
        .tool("ci_log", serde_json::json!({ "run": 20_419_002_115_u64, "job": "soak", "tail": 307 }), trace)
        .read("src/queue.rs")
        .read("src/store/segment.rs")
        .go();
    agent
        .step()
        .think(
            "replay(Lease): deliveries += 1, the job stays in ready: fine. replay(Ack): removed. So who loses it? pull(): `ready.pop_first()` and then `self.jobs.get_mut(&id) else return Ok(None)`: an id in ready without a job ends the pull with EMPTY although others are ready! When can an id be in ready without a job? ack of a job that is ready: after a restart the job is ready AND a worker that still believes in its lease sends ACK: release gives Unknown. No. Replay order: Push, Lease, Expire, Ack... Record::Ack in replay removes (priority, id) from ready. OK. What about dead jobs: is_exhausted is only looked at in requeue, so replay never makes a job dead: it is ready with deliveries == max. Then PULL hands it out again: too often, not never.\n\n\
             Never delivered: kill/purge are not in Record... The torn record! segment.recover cuts at the first bad checksum; everything after it in that segment is dropped, also good records. With fsync=interval and a crash in the middle of a write that is right for the last segment only. But the soak test kills with SIGKILL, page cache survives, no torn record... `good + HEAD + len > self.len` fine.\n\n\
             Look at Store::open: numbers(folder).last() is opened as current AND again in recover: two Segment objects over one file; recover truncates via its own handle; `current.len` stays the old length. With append mode the writes go to the real end. ok, `at` is wrong but unused.\n\n\
             Then PULL with an empty `ready` for... pop_first then `?` on store.append error: the job is out of ready, not leased in the log, lost until restart. Not after a restart though. Let me measure instead.",
        )
        .say("Not obvious from reading. I'll reproduce it: push, lease, kill -9, start, pull everything.")
        .write(
            "tests/restart.rs",
            "//! What is left after a crash.\n\nmod support;\n\nuse support::{Server, worker};\n\n#[tokio::test]\nasync fn leased_jobs_come_back_after_a_crash() {\n    let server = Server::start().await;\n    let ids = server.push_many(\"mail\", 500).await;\n    let slow = worker(&server);\n    for _ in 0..200 {\n        slow.pull(\"mail\", 60_000).await.unwrap();\n    }\n    let server = server.crash_and_restart().await;\n    let fast = worker(&server);\n    let mut seen = std::collections::BTreeSet::new();\n    while let Some(job) = fast.pull(\"mail\", 60_000).await {\n        seen.insert(job.id);\n    }\n    let lost: Vec<_> = ids.iter().filter(|id| !seen.contains(*id)).collect();\n    assert!(lost.is_empty(), \"lost {lost:?}\");\n}\n",
        )
        .go();
    let mut lost = cargo::test(&agent.ws, "tests/redelivery", &[], &mut agent.random);
    lost.text.push_str(
        "     Running tests/restart.rs (target/debug/deps/restart-3f0c8d1b2a99e417)\n\nrunning 1 test\ntest leased_jobs_come_back_after_a_crash ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.31s\n",
    );
    agent.step().bash("cargo test --tests 2>&1", lost).go();
    agent.user("the soak test uses priorities and several topics. and it pauses topics.");
    agent
        .step()
        .think("Pause! Is the pause in the log? pause.rs: queue.pause(&topic) and no Record. After a restart it is not paused. That gives too much, not too little. resume? A topic paused, then crash... no. Hmm: PULL on a paused topic answers EMPTY... and `pull` puts expired ones back. requeue → make_ready. OK so where... Priorities: `ready.remove(&(job.priority, id))` fine.")
        .say("Pausing, then. Reading those two and what the log knows of them.")
        .read("src/commands/pause.rs")
        .read("src/commands/resume.rs")
        .grep("Record::", "src/")
        .grep("paused", "src/")
        .go();
    agent
        .step()
        .think("The log does not know of pauses; so after a restart nothing is paused, and the soak test, which believes its topic is still paused, waits for RESUME to answer OK: queue.resume() answers false for a topic that is not paused, the command answers UNKNOWN, and the soak's worker for that topic gives up. So nothing is lost: the test's worker has left. The fault: RESUME of a topic that is not paused should be OK (idempotent), or a pause should survive. The person must decide: it is a change of behaviour.")
        .say("Found. Nothing is lost: the soak's worker gives up.")
        .grep("resume", "tests/")
        .go();
    agent.answer(
        "Not ours, and no job is lost. A pause is not in the log, so after a restart the topic is not paused; the soak test sends `RESUME`, gets UNKNOWN, and its worker for that topic stops. The jobs are still there.\n\nTwo ways, and it's your call because users notice either:\n1. `RESUME` of a topic that is not paused answers OK.\n2. A pause goes into the log and survives.\n\nI'd do 1 now: small, and right in itself. 2 is a new record type.",
    );
    agent.user("1. And note 2 as an idea in the changelog? No, not in the changelog, open questions go to docs/ideas.md. Do it.");
    agent
        .step()
        .edit(
            "src/commands/resume.rs",
            "if !queue.resume(&self.topic) {\n            return Code::Unknown;\n        }\n        info!(topic = %self.topic, \"resumed\");",
            "// A pause does not survive a restart, so a client cannot know whether there is one.\n        if queue.resume(&self.topic) {\n            info!(topic = %self.topic, \"resumed\");\n        }",
        )
        .write("docs/ideas.md", "# Ideas\n\n- A pause could be a record in the log and survive a restart. Today it does not, and `RESUME` answers OK either way.\n")
        .edit("docs/commands/resume.md", "- UNKNOWN if there is no such job or topic\n", "Nothing: a topic that is not paused, or is not there, is as good as resumed.\n")
        .edit("CHANGELOG.md", "- `STATS`: `expired`", "- `RESUME` of a topic that is not paused answers OK.\n- `STATS`: `expired`")
        .go();
    let passed = cargo::test(&agent.ws, "", &[], &mut agent.random);
    let diff = git::diff(&agent.ws, "");
    agent.step().bash("cargo test 2>&1", passed).bash("git diff", Shell::ok(diff)).go();
    agent.user("good. last thing: 500 runs of both, in release, and the benchmark, then we are done for today");
    let many = runs::repeated(500, &[], &mut agent.random);
    let numbers = bench::criterion(4, &mut agent.random);
    agent
        .step()
        .bash("for i in $(seq 500); do cargo test --release --quiet --test redelivery --test restart || echo FAILED; done", Shell::ok(many))
        .bash("cargo bench --bench queue -- --baseline main 2>&1", Shell::ok(numbers))
        .go();
    agent.answer("0 of 500, and the benchmark is within noise (+0.4 %). Two commits on `fix/redelivery`; `vendor/` is as it was.");
    agent.user("thanks! what is still open?");
    agent.answer("1. A pause does not survive a restart (`docs/ideas.md`).\n2. `replay` never makes a job dead: a job at its last delivery is handed out once more after a restart. I saw it while reading and have not touched it.\n3. The dashboard's `expired` panel drops, because lost connections no longer count.");
}

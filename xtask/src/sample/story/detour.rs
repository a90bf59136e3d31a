//! Act two: a way that leads nowhere, left again.

use serde_json::json;

use crate::sample::agent::Agent;
use crate::sample::output::{Shell, cargo, git};

pub(super) fn play(agent: &mut Agent) {
    let before = agent.rec.leaf();
    agent.user("Could we simply pause tokio's time in the test, so that the sweeper never runs by surprise? Try it, ten minutes at most.");
    agent
        .step()
        .think("tokio::time::pause makes sleeps advance at once when the runtime is idle. But leases use SystemTime through clock::now_ms, which does not follow. Try it anyway; the person asked.")
        .say("Trying. One doubt beforehand: leases read `SystemTime`, which does not follow tokio's clock.")
        .edit(
            "tests/redelivery.rs",
            "#[tokio::test]\nasync fn redelivery_happens_once() {",
            "#[tokio::test(start_paused = true)]\nasync fn redelivery_happens_once() {",
        )
        .read("src/clock.rs")
        .go();
    let failed = cargo::test(
        &agent.ws,
        "tests/redelivery",
        &[(
            "redelivery_happens_once",
            "tests/redelivery.rs:42:5:\nassertion `left == right` failed: acknowledged 32, delivered again 0\n  left: 32\n right: 64",
        )],
        &mut agent.random,
    );
    agent.step().bash("cargo test --test redelivery 2>&1", failed).go();
    agent
        .step()
        .think("As feared: tokio's time jumps, SystemTime does not, so no lease runs out. I could make clock.rs use tokio::time::Instant, but deadlines go to disk as epoch milliseconds.")
        .say("As feared: tokio's clock jumps, `SystemTime` does not, so nothing runs out. Would `tokio::time::Instant` in `clock.rs` do?")
        .grep("now_ms", "src/")
        .grep("deadline", "src/store")
        .read("src/store/mod.rs")
        .go();
    let diff = git::diff(&agent.ws, "");
    agent.step().bash("git diff", Shell::ok(diff)).go();
    agent.answer(
        "It does not work without moving every deadline to tokio's clock, and deadlines are written to the log as epoch milliseconds: they must mean \
         something after a restart. The test would pass and test something else. I'd leave this way.",
    );
    agent.ws.restore();
    agent.rec.branch(&before);
    agent.rec.clock.pass(70_000);
    let from = before.clone();
    agent.rec.entry(
        "branch_summary",
        json!({
            "fromId": from,
            "summary": "The user explored a different conversation branch before returning here. Summary of that exploration:\n\n## Goal\nMake \
                        `redelivery_happens_once` deterministic by pausing tokio's clock in the test.\n\n## Outcome\nAbandoned. Leases read \
                        `SystemTime` through `clock::now_ms`, which does not follow tokio's paused clock, so no lease ever runs out (acknowledged 32, \
                        delivered again 0). Moving `clock.rs` to `tokio::time::Instant` is not possible: deadlines are stored in the log as \
                        milliseconds since the epoch.\n\n## Decision\nTime must come in as an argument instead of being read in `lease.rs` and \
                        `queue.rs`. No files were left changed.",
            "details": { "readFiles": ["src/clock.rs", "src/store/mod.rs"], "modifiedFiles": [] },
            "fromHook": false,
        }),
    );
}

//! Act four: every command gets its time from the edge.

use serde_json::json;

use crate::sample::agent::Agent;
use crate::sample::commands::{COMMANDS, Command, type_name};
use crate::sample::output::{Shell, bench, cargo, git};

const CONTEXT: &str = "    /// How long commands take.\n    pub metrics: &'a Metrics,\n}\n";

const CONTEXT_NEW: &str = "    /// How long commands take.
    pub metrics: &'a Metrics,
    /// When the frame was read, in milliseconds since the epoch. One command sees one time.
    pub now: u64,
}

impl Context<'_> {
    /// The time of the command.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// How long the command has taken so far, in milliseconds, by the monotonic clock.
    pub fn elapsed(&self) -> u64 {
        self.metrics.since_frame().as_millis() as u64
    }
}
";

pub(super) fn play(agent: &mut Agent) {
    agent.pause(7);
    agent.user(
        "Sorry, phone. Go on with the commands. All eighteen of them: time from the context, one time per command, nothing reads the clock by itself. Three files at a time so I can follow.",
    );
    agent
        .step()
        .think("Context needs `now`. Then each command: `let started = now_ms()` becomes context.now(), observe() uses context.elapsed().")
        .read("src/commands/mod.rs")
        .grep("now_ms", "src/commands")
        .go();
    agent.step().edit("src/commands/mod.rs", CONTEXT, CONTEXT_NEW).go();
    for group in COMMANDS.chunks(3) {
        move_group(agent, group);
    }
    let faults = cargo::errors(
        &agent.ws,
        &[
            (
                "src/server/conn.rs",
                "let mut context = Context { worker, queue: &queue, changed: &changed };",
                "E0063",
                "missing field `now` in initializer of `commands::Context<'_>`",
                "missing `now`",
            ),
            (
                "src/commands/compact.rs",
                "now_ms() - started",
                "E0425",
                "cannot find function `now_ms` in this scope",
                "not found in this scope",
            ),
        ],
    );
    agent.step().bash("cargo check 2>&1", faults).go();
    agent
        .step()
        .say("Two left: the place where the context is made, and a message in `compact`.")
        .edit("src/commands/compact.rs", "info!(ms = now_ms() - started, \"compacted\");", "info!(ms = context.elapsed(), \"compacted\");")
        .edit(
            "src/server/conn.rs",
            "                let mut context = Context { worker, queue: &queue, changed: &changed };",
            "                let now = crate::clock::now_ms();\n                let mut context = Context { worker, queue: &queue, changed: &changed, metrics: &metrics, now };",
        )
        .go();
    let passed = cargo::test(&agent.ws, "", &[], &mut agent.random);
    agent.step().bash("cargo test 2>&1", passed).go();
    let stat = git::stat(&agent.ws);
    let diff = git::diff(&agent.ws, "src/commands");
    agent
        .step()
        .bash("git diff --stat", Shell::ok(stat))
        .bash("git diff src/commands", Shell::ok(diff))
        .go();
    agent.answer("All eighteen moved; tests pass. `grep now_ms src/commands` finds nothing any more. `vendor/` untouched.");
    compaction(agent);
    agent.user("Read lease.rs and queue.rs again in full before you go on, I want you to have the real text and not your summary of it.");
    agent.step().read("src/lease.rs").read("src/queue.rs").read("src/server/sweeper.rs").go();
    agent.answer(
        "Read. Nothing in them surprises me; `expire` and `forget` both take the generation.",
    );
    agent.user("Each command should have a test that it uses the context's time, so nobody brings now_ms back. Keep them tiny.");
    for group in COMMANDS.chunks(3) {
        test_group(agent, group);
    }
    let clippy = cargo::clippy_clean(&mut agent.random);
    agent.step().bash("cargo fmt && cargo clippy --all-targets -- -D warnings 2>&1", clippy).go();
    let numbers = bench::criterion(-3, &mut agent.random);
    agent.user(
        "and the benchmark? you now read the clock once per frame instead of up to three times",
    );
    agent.step().bash("cargo bench --bench queue -- --baseline main 2>&1", Shell::ok(numbers)).go();
    agent.answer("No change that can be told from noise (-0.3 %). The clock was never the cost.");
}

fn move_group(agent: &mut Agent, group: &[Command]) {
    let paths: Vec<_> =
        group.iter().map(|command| format!("src/commands/{}.rs", command.name)).collect();
    let mut step = agent.step();
    for path in &paths {
        step = step.read(path);
    }
    step.go();
    let mut step = agent.step();
    for (path, command) in paths.iter().zip(group) {
        step = step.edit(
            path,
            "        let started = now_ms();\n        let mut queue = context.queue.lock().await;\n",
            "        let started = context.now();\n        let mut queue = context.queue.lock().await;\n",
        );
        let call = match command.name {
            "ack" => Some((
                "queue.ack(JobId(self.job), context.worker)",
                "queue.ack(JobId(self.job), context.worker, started)",
            )),
            "nack" => Some((
                "queue.nack(JobId(self.job), context.worker)",
                "queue.nack(JobId(self.job), context.worker, started)",
            )),
            "extend" => Some(("context.worker, self.ttl)", "context.worker, self.ttl, started)")),
            "pull" => Some((
                "queue.pull(&self.topic, context.worker, self.ttl)",
                "queue.pull(&self.topic, context.worker, self.ttl, started)",
            )),
            "push" => Some((
                "self.payload.clone(), self.max_deliveries)",
                "self.payload.clone(), self.max_deliveries, started)",
            )),
            "stats" => Some(("queue.oldest_ready()", "queue.oldest_ready(started)")),
            _ => None,
        };
        if let Some((old, new)) = call {
            step = step.edit(path, old, new);
        }
    }
    step.go();
    for path in &paths {
        agent.ws.replace_all(path, "use crate::clock::now_ms;\n", "");
        agent.ws.replace_all(
            path,
            "observe(Self::CODE, now_ms() - started)",
            "observe(Self::CODE, context.elapsed())",
        );
    }
    let names = group.iter().map(|command| command.name).collect::<Vec<_>>().join(",");
    agent
        .step()
        .bash(
            &format!("sed -i -e '/^use crate::clock::now_ms;$/d' -e 's/now_ms() - started)/context.elapsed())/' src/commands/{{{names}}}.rs"),
            Shell::ok(""),
        )
        .go();
    let tested = cargo::test(&agent.ws, "src/commands", &[], &mut agent.random);
    agent.step().bash("cargo test --lib commands:: 2>&1", tested).go();
}

fn test_group(agent: &mut Agent, group: &[Command]) {
    let mut step = agent.step();
    for command in group {
        let path = format!("src/commands/{}.rs", command.name);
        let kind = type_name(command.name);
        step = step.edit(
            &path,
            "mod tests {\n    use super::*;\n",
            &format!(
                "mod tests {{\n    use super::*;\n    use crate::commands::testing::{{Bench, FROZEN}};\n\n    #[tokio::test]\n    async fn it_is_the_time_of_the_context() {{\n        \
                 let mut bench = Bench::at(FROZEN);\n        let command = {kind}::parse(&body()).unwrap();\n        command.run(&mut bench.context(), &mut bench.out).await;\n        \
                 assert!(bench.times_seen().iter().all(|time| *time == FROZEN), \"{{:?}}\", bench.times_seen());\n    }}\n"
            ),
        );
    }
    step.go();
    let name = group[0].name;
    let tested = cargo::test(&agent.ws, "src/commands", &[], &mut agent.random);
    agent
        .step()
        .bash(
            &format!("cargo test --lib commands:: 2>&1  # after {name} and its neighbours"),
            tested,
        )
        .go();
}

/// The agent's window has filled; it makes a summary of what was before.
fn compaction(agent: &mut Agent) {
    let kept = agent.rec.leaf();
    agent.rec.clock.pass(31_000);
    let read = [
        "AGENTS.md",
        "src/clock.rs",
        "src/commands/mod.rs",
        "src/server/conn.rs",
        "src/server/sweeper.rs",
    ];
    let mut modified: Vec<String> =
        COMMANDS.iter().map(|command| format!("src/commands/{}.rs", command.name)).collect();
    modified.extend(
        ["src/lease.rs", "src/queue.rs", "src/server/conn.rs", "src/server/sweeper.rs"]
            .map(str::to_owned),
    );
    modified.sort();
    let summary = format!(
        "## Goal\nFix the flaky test `redelivery_happens_once` (tests/redelivery.rs) at its root; then let every command take its time from the context.\n\n\
         ## Constraints & Preferences\n- Answer in short.\n- Never touch `vendor/`.\n- Tell the user before changing the public API.\n- No sleeps, no retries, no bigger timeouts in tests.\n\
         - Time comes in as `now: u64`; no Clock trait, no generics.\n- Three files at a time.\n\n\
         ## Progress\n### Done\n- [x] Root cause: the sweeper works off a stale list while PULL puts the same jobs back; `forget` took the new lease away.\n\
         - [x] `LeaseTable::expired(now)` gives `(JobId, generation)`; `forget` compares the generation; `release` keeps counting, `retire` ends it.\n\
         - [x] `Queue` methods take `now`.\n- [x] All 18 commands use `context.now()` and `context.elapsed()`.\n- [x] 0 of 200 runs fail (5 of 200 before).\n### In Progress\n- [ ] Tests that each command uses the context's time\n### Blocked\n- (none)\n\n\
         ## Key Decisions\n- **No tokio::time::pause**: leases are stored as epoch milliseconds and cannot follow tokio's clock.\n- **generation stays u32**.\n\n\
         ## Next Steps\n1. Tiny test for each command.\n2. Benchmark against main.\n3. CHANGELOG line, commit.\n\n\
         ## Critical Context\n- Failing assertion was `job 3 came too often (left: 3, right: 2)`.\n- `vendor/` untouched so far.\n\n\
         <read-files>\n{}\n</read-files>\n\n<modified-files>\n{}\n</modified-files>",
        read.join("\n"),
        modified.join("\n")
    );
    agent.rec.compaction(&kept, &summary, &json!({ "readFiles": read, "modifiedFiles": modified }));
}

//! Act one: why does the test fail?

use serde_json::json;

use crate::sample::agent::Agent;
use crate::sample::output::{Shell, cargo, ci, runs};
use crate::sample::pictures;
use crate::sample::workspace::Workspace;

const LOOP: &str = "for i in $(seq 200); do timeout 60 cargo test --quiet --test redelivery redelivery_happens_once >/dev/null 2>&1 && r=ok || r=FAILED; printf 'run %3d: %-6s\\n' $i $r; done; echo \"$(grep -c FAILED) of 200 failed\"";

pub(super) fn play(agent: &mut Agent) {
    agent.user(
        "tests/redelivery.rs fails in CI, maybe one run in forty. Find out why and fix it properly: no sleeps, no \
         retries, no bigger timeouts. Rules for this session: answer in short, never touch the vendored folder, and \
         tell me before you change the public API. I would rather have a small honest fix than a clever one.",
    );
    let listing = listing(&agent.ws);
    agent
        .step()
        .think(
            "Start with the project's own rules, then the test, then what it exercises. AGENTS.md first, because it \
             may forbid something I would do by habit.",
        )
        .say("I'll read the rules, the test and the layout first.")
        .read("AGENTS.md")
        .read("tests/redelivery.rs")
        .bash("ls -R src tests vendor | head -60", Shell::ok(listing))
        .go();
    agent
        .step()
        .say("The failing one is `redelivery_happens_once`. Reading what it exercises.")
        .read("src/lease.rs")
        .read("src/queue.rs")
        .read("src/server/sweeper.rs")
        .go();
    let failed = cargo::test(
        &agent.ws,
        "",
        &[(
            "redelivery_happens_once",
            "tests/redelivery.rs:39:9:\nassertion `left == right` failed: job 3 came too often\n  left: 3\n right: 2",
        )],
        &mut agent.random,
    );
    let passed = cargo::test(&agent.ws, "", &[], &mut agent.random);
    agent.step().say("Does it fail here at all?").bash("cargo test 2>&1 | tail -150", passed).go();
    let repeated = runs::repeated(200, &[31, 74, 90, 152, 188], &mut agent.random);
    agent
        .step()
        .think("Green once says nothing at one in forty. Two hundred runs give me a rate to compare a fix with.")
        .say("Green, which proves nothing. Two hundred runs:")
        .bash(LOOP, Shell::ok(repeated))
        .go();
    agent
        .step()
        .say("5 of 200. Once more, and this time I keep a failing run's output.")
        .bash("cargo test --test redelivery 2>&1", failed)
        .go();
    agent
        .step()
        .think(
            "deliveries is 3, not 2: the job was handed out, came back once because its lease ran out, was handed out \
             again to `fast`, and then came back a second time although that lease is 60 s long. So somebody ended a \
             lease that had not run out. Who calls forget()? expire() and drop_worker(). drop_worker is not at play, \
             the connection lives.",
        )
        .say("A lease of 60 s was ended early: `deliveries` is 3. Who ends leases?")
        .grep("forget", "src/")
        .grep("expire", "src/")
        .grep("generation", "src/")
        .go();
    agent
        .step()
        .read("src/commands/pull.rs")
        .read("src/commands/ack.rs")
        .read("src/commands/nack.rs")
        .go();
    let log = ci::log(&agent.ws, &mut agent.random);
    agent
        .step()
        .think(
            "pull.rs puts leases that ran out back before it pulls. The sweeper does the same, but it takes its list \
             under one lock and works it off under others. Between the two, PULL can put job 1 back and lease it again. \
             Then the sweeper comes to job 1 in its stale list and `forget`s the NEW lease. `generation` exists on the \
             lease and nobody looks at it. That fits. I want to see it in a trace before I believe it.",
        )
        .say("A suspicion: the sweeper works off a stale list while `PULL` does the same. I want to see it in a trace. Fetching the CI log of the failing job.")
        .tool("ci_log", json!({ "run": 20_418_331_907_u64, "job": "test (ubuntu-24.04)" }), log)
        .go();
    agent
        .step()
        .think("The place is around `put back before pull`. sweeper: due count=32; j1 ran out; pull puts back 31; leases j3 generation 2 to worker 3; sweeper: j3 ran out; leased again as generation 3.")
        .say("There it is. Let me look only at the lines of job 3.")
        .bash(
            "grep -n 'j00000003\\|due count\\|put back' /tmp/ci-20418331907.log | tail -20",
            Shell::ok(
                "4121: server::sweeper: due count=32 first=j00000001 last=j0000003f\n4123: commands::pull: put back before pull count=31\n\
                 4125: commands::pull: leased id=j00000003 worker=3 generation=2 ttl=60000\n4126: server::sweeper: lease ran out id=j00000003\n\
                 4127: commands::pull: leased id=j00000003 worker=3 generation=3 ttl=60000\n",
            ),
        )
        .go();
    let found = agent.answer(
        "Found it; it is a bug in the server, not in the test.\n\n1. The sweeper takes a list of due jobs under one lock (`sweeper.rs`) \
         and puts them back one at a time under others.\n2. Meanwhile `PULL` puts the same jobs back itself and leases job 3 again \
         (generation 2, 60 s).\n3. The sweeper reaches job 3 in its stale list; `forget` takes the **new** lease away.\n\nSo promise 3 of the README \
         is broken in production too, whenever a pull meets the sweeper. `Lease::generation` is there to tell the two leases apart, \
         and nothing compares it.",
    );
    agent.rec.entry("label", json!({ "targetId": found, "label": "root cause found" }));
    agent.user_with(
        "Good find. That would explain the spikes we see in redeliveries, see the panel. Is it the same thing?",
        &[pictures::DASHBOARD],
    );
    agent
        .step()
        .think("Three bars stand out in the panel. Is there anything periodic that makes many leases end at once? A nightly batch with one TTL would do: many due at once, so a long stale list.")
        .say("Plausible: three tall bars, the rest flat. The longer the list, the wider the window. What makes many leases end together?")
        .grep("next_deadline", "src/")
        .grep("notify_one", "src/")
        .read("src/server/conn.rs")
        .go();
    agent.answer(
        "Very likely the same: a lost connection or a batch with one TTL makes hundreds of leases due at once, and the list is stale for as long \
         as it takes to work it off. I can't prove it from the picture alone; `expired` against `delivered - pushed` in STATS during a spike would.",
    );
}

fn listing(ws: &Workspace) -> String {
    let mut out = String::new();
    for folder in
        ["src", "src/commands", "src/server", "src/store", "tests", "vendor/crc-slice/src"]
    {
        out.push_str(&format!("{folder}:\n"));
        for name in ws.paths().filter_map(|path| path.strip_prefix(folder)?.strip_prefix('/')) {
            if !name.contains('/') {
                out.push_str(&format!("{name}\n"));
            }
        }
        out.push('\n');
    }
    out
}

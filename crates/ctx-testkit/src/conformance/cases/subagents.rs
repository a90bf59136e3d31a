//! Sessions started by other sessions.

use ctx_core::{SubagentEnd, SubagentSpawn};

use super::{WINDOW, script};
use crate::conformance::bench::{Bench, Running};
use crate::conformance::laws;
use crate::conformance::stop::{Stop, Verdict, ensure};

const ENDS: [SubagentEnd; 5] = [
    SubagentEnd::Completed,
    SubagentEnd::Failed,
    SubagentEnd::Deleted,
    SubagentEnd::Swept,
    SubagentEnd::Released,
];

pub(super) fn subagents(bench: &Bench) -> Verdict {
    let host = bench.host(WINDOW);
    let (running, control) = (bench.engine(&host)?, bench.engine(&bench.host(WINDOW))?);
    let (mut parent, mut other) = (running.session("parent"), control.session("parent"));
    for n in 0..40 {
        for message in script::turn(n, 6_000) {
            parent.say(message.clone())?;
            other.say(message)?;
        }
        parent.request()?;
        other.request()?;
        parent.end_turn()?;
        other.end_turn()?;
        if n % 10 != 9 {
            continue;
        }
        let spawn = spawn(&format!("child-{n}"), (n % 20 == 9).then_some(60_000));
        let before = host.store.snapshot();
        prepare(&running, &spawn)?;
        rollback(&running, &spawn)?;
        ensure(
            host.store.snapshot() == before,
            || "a start that was rolled back leaves something in the store".to_owned(),
            "remove what was stored for the child",
        )?;
        prepare(&running, &spawn)?;
        let mut child = running.session(&spawn.child_session_key);
        child.say_turn(n, 1_000)?;
        child.request()?;
        laws::pairs(&child.view)?;
        child.end_turn()?;
        ended(&running, &spawn.child_session_key, ENDS[n / 10 % ENDS.len()])?;
    }
    ensure(
        laws::live(&parent.view) == laws::live(&other.view),
        || "the parent's requests differ from those of a session without children".to_owned(),
        "keep the data of a child separate from its parent's",
    )?;
    // Calls about children that the engine never saw, or has forgotten in a restart.
    rollback(&running, &spawn("never-prepared", None))?;
    for end in ENDS {
        ended(&running, "never-seen", end)?;
    }
    Ok(None)
}

fn spawn(child: &str, ttl_ms: Option<u64>) -> SubagentSpawn {
    SubagentSpawn {
        parent_session_key: "parent".to_owned(),
        child_session_key: child.to_owned(),
        ttl_ms,
    }
}

fn prepare(running: &Running<'_>, spawn: &SubagentSpawn) -> Result<(), Stop> {
    running.call("prepare_subagent_spawn", running.engine.prepare_subagent_spawn(spawn))
}

fn rollback(running: &Running<'_>, spawn: &SubagentSpawn) -> Result<(), Stop> {
    running.call("rollback_subagent_spawn", running.engine.rollback_subagent_spawn(spawn))
}

fn ended(running: &Running<'_>, child: &str, end: SubagentEnd) -> Result<(), Stop> {
    running.call("on_subagent_ended", running.engine.on_subagent_ended(child, end))
}

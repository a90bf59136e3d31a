//! State that survives a process.

use std::sync::Arc;

use ctx_core::Entry;

use super::script;
use crate::conformance::bench::Bench;
use crate::conformance::laws;
use crate::conformance::stop::{Stop, Verdict, ensure};

/// A window that is too small for a session of these turns.
const WINDOW: u32 = 16_000;
const TURNS: usize = 30;

pub(super) fn restart(bench: &Bench) -> Verdict {
    let host = bench.host(WINDOW);
    let mut said: Vec<Arc<Entry>> = Vec::new();
    let mut before = None;
    // Each instance replaces one that was disposed of, or that ended without `dispose`.
    for life in 0..3 {
        let running = bench.engine(&host)?;
        let mut session = running.session("s");
        let mut first = None;
        if life > 0 {
            session.reopen(&said)?;
            session.bootstrap()?;
        }
        for n in life * TURNS..(life + 1) * TURNS {
            for (at, message) in script::turn(n, 1_500).into_iter().enumerate() {
                let entry = Arc::new(Entry::in_memory(format!("{n:04}-{at}"), message));
                session.ingest(&entry)?;
                session.open(std::slice::from_ref(&entry))?;
                said.push(entry);
            }
            session.assemble()?;
            laws::fits(&session.view, || format!("turn {n}, instance {}", life + 1))?;
            first.get_or_insert(session.view.overflow());
            session.finish()?;
            laws::nothing_doubled(&session.view)?;
            laws::pairs(&session.view)?;
            session.commit(&format!("turn-{n}"))?;
            session.end_turn()?;
        }
        let worst = first.max(before);
        ensure(
            before.is_none() || worst == before,
            || "the second instance leaves more for the host to cut than the first".to_owned(),
            "load the stored state at `bootstrap`, or plan again from the rows",
        )?;
        before = Some(session.view.overflow());
        drop(session);
        if life == 0 {
            running.dispose()?;
        }
    }
    let stored: usize = host.store.snapshot().values().map(Vec::len).sum();
    Ok(Some(format!("{stored} bytes in the store")))
}

pub(super) fn commit_turn(bench: &Bench) -> Verdict {
    let (host, other) = (bench.host(WINDOW), bench.host(WINDOW));
    let (twice, once) = (bench.engine(&host)?, bench.engine(&other)?);
    let (mut session, mut control) = (twice.session("s"), once.session("s"));
    for n in 0..12 {
        for message in script::turn(n, 6_000) {
            session.say(message.clone())?;
            control.say(message)?;
        }
        session.request()?;
        control.request()?;
        let key = format!("turn-{n}");
        session.commit(&key)?;
        control.commit(&key)?;
        unchanged(&host.store, &key, || session.commit(&key))?;
        if n > 0 {
            let earlier = format!("turn-{}", n - 1);
            unchanged(&host.store, &earlier, || session.commit(&earlier))?;
        }
        session.end_turn()?;
        control.end_turn()?;
    }
    ensure(
        laws::live(&session.view) == laws::live(&control.view),
        || "turns that were committed twice change the request".to_owned(),
        "ignore a known key",
    )?;
    // An earlier key, after a restart.
    drop(session);
    twice.dispose()?;
    let running = bench.engine(&host)?;
    let session = running.session("s");
    session.bootstrap()?;
    unchanged(&host.store, "turn-11", || session.commit("turn-11"))?;
    Ok(None)
}

fn unchanged(
    store: &crate::conformance::host::HeldStore,
    key: &str,
    again: impl FnOnce() -> Result<(), Stop>,
) -> Result<(), Stop> {
    let before = store.snapshot();
    again()?;
    ensure(
        store.snapshot() == before,
        || format!("'{key}' was committed twice, and the store changed the second time"),
        "store the key with the data, and ignore a repeated key",
    )
}

//! State that survives a process.

use std::sync::Arc;

use ctx_core::{Entry, Tokens};

use super::script;
use crate::conformance::bench::Bench;
use crate::conformance::laws;
use crate::conformance::stop::{Stop, Verdict, ensure};

/// A window that is too small for a session of these turns.
const WINDOW: u32 = 16_000;
const TURNS: usize = 30;

pub(super) fn restart(bench: &Bench) -> Verdict {
    let house = bench.house(WINDOW);
    let mut said: Vec<Arc<Entry>> = Vec::new();
    let mut before = None;
    // Each instance replaces one that was disposed of, or that just ended.
    for life in 0..3 {
        let running = bench.engine(&house)?;
        let mut sitting = running.session("s");
        let mut first = None;
        if life > 0 {
            sitting.reopen(&said)?;
            sitting.bootstrap()?;
        }
        for n in life * TURNS..(life + 1) * TURNS {
            for (at, message) in script::turn(n, 1_500).into_iter().enumerate() {
                let entry = Arc::new(Entry::in_memory(format!("{n:04}-{at}"), message));
                sitting.ingest(&entry)?;
                sitting.open(std::slice::from_ref(&entry))?;
                said.push(entry);
            }
            sitting.assemble()?;
            laws::fits(&sitting.view, || format!("turn {n}, instance {}", life + 1))?;
            first.get_or_insert(over(&sitting));
            sitting.finish()?;
            laws::nothing_doubled(&sitting.view)?;
            laws::pairs(&sitting.view)?;
            sitting.commit(&format!("turn-{n}"))?;
            sitting.end_turn()?;
        }
        let worst = first.max(before);
        ensure(
            before.is_none() || worst == before,
            || "the second instance leaves more for the host to cut than the first".to_owned(),
            "load the stored state at `bootstrap`, or plan again from the rows",
        )?;
        before = Some(over(&sitting));
        drop(sitting);
        if life == 0 {
            running.dispose()?;
        }
    }
    Ok(Some(format!("{} bytes in the store", stored(&house.store.snapshot()))))
}

fn over(sitting: &crate::conformance::sitting::Sitting<'_>) -> Tokens {
    sitting.view.overflow()
}

fn stored(values: &std::collections::BTreeMap<String, Vec<u8>>) -> usize {
    values.values().map(Vec::len).sum()
}

pub(super) fn commit_turn(bench: &Bench) -> Verdict {
    let (house, other) = (bench.house(WINDOW), bench.house(WINDOW));
    let (twice, once) = (bench.engine(&house)?, bench.engine(&other)?);
    let (mut sitting, mut control) = (twice.session("s"), once.session("s"));
    for n in 0..12 {
        for message in script::turn(n, 6_000) {
            sitting.say(message.clone())?;
            control.say(message)?;
        }
        sitting.request()?;
        control.request()?;
        let key = format!("turn-{n}");
        sitting.commit(&key)?;
        control.commit(&key)?;
        unchanged(&house.store, &key, || sitting.commit(&key))?;
        if n > 0 {
            let earlier = format!("turn-{}", n - 1);
            unchanged(&house.store, &earlier, || sitting.commit(&earlier))?;
        }
        sitting.end_turn()?;
        control.end_turn()?;
    }
    ensure(
        laws::live(&sitting.view) == laws::live(&control.view),
        || "turns that were committed twice change the request".to_owned(),
        "ignore a known key",
    )?;
    // An earlier key, after a restart.
    drop(sitting);
    twice.dispose()?;
    let running = bench.engine(&house)?;
    let sitting = running.session("s");
    sitting.bootstrap()?;
    unchanged(&house.store, "turn-11", || sitting.commit("turn-11"))?;
    Ok(None)
}

fn unchanged(
    store: &crate::conformance::HeldStore,
    key: &str,
    again: impl FnOnce() -> Result<(), Stop>,
) -> Result<(), Stop> {
    let before = store.snapshot();
    again()?;
    ensure(
        store.snapshot() == before,
        || format!("'{key}' was committed twice, and the store changed the second time"),
        "remember the key with what was stored, and do nothing when it comes again",
    )
}

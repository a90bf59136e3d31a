//! The cost of long sessions.

use std::sync::Arc;

use ctx_core::Entry;

use super::WINDOW;
use crate::Sample;
use crate::conformance::bench::Bench;
use crate::conformance::lazy::Reads;
use crate::conformance::reading::resident;
use crate::conformance::sitting::TestSession;
use crate::conformance::stop::{Stop, Verdict, ensure};

/// Messages of the long session.
const MESSAGES: usize = 10_000;

/// The read counts of two sessions are compared: one with this number of messages, one twice as
/// long.
const SHORT: usize = 400;

/// Number of messages between two requests of the growing session.
const STRIDE: usize = 100;

pub(super) fn long_session(bench: &Bench) -> Verdict {
    let (short, long) = (at_once(bench, SHORT)?, at_once(bench, 2 * SHORT)?);
    ensure(
        long <= short.saturating_mul(3).saturating_add(SHORT as u64),
        || {
            format!(
                "messages are read {short} times in a session of {SHORT}, and {long} times in one \
                 twice as long"
            )
        },
        "read each message a bounded number of times: the work must grow with the session, not \
         with its square",
    )?;
    let all = at_once(bench, MESSAGES)?;

    let running = bench.engine(&bench.host(WINDOW))?;
    let mut session = running.session("growing");
    let reads = Reads::default();
    let entries = entries(&reads, MESSAGES);
    for part in entries.chunks(STRIDE) {
        session.open(part)?;
        session.fitting_request(|| format!("a session of {MESSAGES} messages"))?;
        session.next_turn();
    }
    let each = |reads: u64| reads as f64 / MESSAGES as f64;
    let (all, growing) = (each(all), each(reads.get()));
    Ok(Some(format!("a message is read {all:.1} times at once, {growing:.1} times turn by turn")))
}

fn entries(reads: &Reads, messages: usize) -> Vec<Arc<Entry>> {
    let sample = Sample { messages, tokens: messages * 40, calls_per_turn: 4 };
    reads.entries(sample.messages())
}

/// Returns how often messages are read when a session of that length is opened and assembled once.
fn at_once(bench: &Bench, messages: usize) -> Result<u64, Stop> {
    let running = bench.engine(&bench.host(WINDOW))?;
    let mut session = running.session("at-once");
    let reads = Reads::default();
    session.open(&entries(&reads, messages))?;
    session.bootstrap()?;
    session.fitting_request(|| format!("a session of {messages} messages"))?;
    Ok(reads.get())
}

/// Number of turns before the first memory measurement, which fill the caches.
const WARM_UP: usize = 200;
/// Number of turns between two measurements, and number of measurements.
const QUARTER: usize = 200;
const QUARTERS: usize = 4;
/// Maximum growth over these turns: the session itself takes a few megabytes.
const MAX_GROWTH: i64 = 64 << 20;
/// Other activity of the process may use memory too: the case fails only if the growth repeats.
const TRIES: usize = 2;

pub(super) fn memory(bench: &Bench) -> Verdict {
    let running = bench.engine(&bench.host(16_000))?;
    let mut session = running.session("long");
    let mut turns = 0..;
    take_turns(&mut session, &mut turns, WARM_UP)?;
    let mut total = 0;
    for _ in 0..TRIES {
        let mut quarters = Vec::new();
        for _ in 0..QUARTERS {
            let before = resident();
            take_turns(&mut session, &mut turns, QUARTER)?;
            let (Some(before), Some(after)) = (before, resident()) else {
                return Err(Stop::skipped("the operating system does not report memory usage"));
            };
            quarters.push(after.saturating_sub(before));
        }
        total = quarters.iter().sum();
        // Freed memory is reused first, so growth may begin late; but a leak does not end.
        let goes_on = quarters.iter().skip(QUARTERS / 2).all(|&quarter| quarter > 0);
        if !goes_on || total <= MAX_GROWTH {
            return Ok(Some(format!("grew by {} over 800 turns", megabytes(total))));
        }
    }
    Err(Stop::failed(
        format!("memory grows with each turn: by {} over 800 turns", megabytes(total)),
        "free the data of dropped messages; keep it in the store if it is needed again",
    ))
}

fn take_turns(
    session: &mut TestSession<'_>,
    turns: &mut impl Iterator<Item = usize>,
    how_many: usize,
) -> Result<(), Stop> {
    for n in turns.take(how_many) {
        session.say_turn(n, 400)?;
        session.request()?;
        session.commit(&format!("turn-{n}"))?;
        session.end_turn()?;
    }
    Ok(())
}

fn megabytes(bytes: i64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

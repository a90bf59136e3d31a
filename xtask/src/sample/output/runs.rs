//! A test run over and over, and the log of one run that failed.

use std::fmt::Write;

use crate::sample::random::Random;

/// `for i in $(seq COUNT)`: one line a run; those in `failing` fail.
pub(crate) fn repeated(count: u32, failing: &[u32], random: &mut Random) -> String {
    let mut out = String::new();
    for run in 1..=count {
        let verdict = if failing.contains(&run) { "FAILED" } else { "ok" };
        let _ = writeln!(out, "run {run:>3}: {verdict:<6} {}.{:02} s", 0, random.range(18, 47));
    }
    let _ = writeln!(out, "{} of {count} failed", failing.len());
    out
}

/// The server's trace of the run that failed: what the sweeper and the workers did around the
/// moment the leases ran out.
pub(crate) fn trace(events: u32, random: &mut Random) -> String {
    let mut out = String::new();
    let mut us = 41_220_113_u64;
    let mut line = |us: u64, level: &str, place: &str, what: &str| {
        let _ = writeln!(
            out,
            "2026-03-11T17:02:{:02}.{:06}Z {level:>5} tidemark::{place}: {what}",
            us / 1_000_000 % 60,
            us % 1_000_000
        );
    };
    for event in 0..events {
        us += random.range(20, 700);
        let job = random.range(1, 65);
        match random.range(0, 6) {
            0 => line(
                us,
                "TRACE",
                "server::sweeper",
                &format!("sweeper sleeps wait_ms={}", random.range(0, 40)),
            ),
            1 => line(
                us,
                "DEBUG",
                "commands::pull",
                &format!("leased id=j{job:08x} worker=2 generation=1 ttl=40"),
            ),
            2 => line(
                us,
                "TRACE",
                "store::segment",
                &format!("append bytes={} at={}", random.range(17, 90), 8_192 + event * 61),
            ),
            3 => line(
                us,
                "DEBUG",
                "commands::ack",
                &format!("released id=j{job:08x} worker=2 left_ms={}", random.range(0, 9)),
            ),
            4 => line(
                us,
                "DEBUG",
                "commands::ack",
                &format!("refused id=j{job:08x} worker=2 code=GONE"),
            ),
            _ => line(us, "DEBUG", "server::sweeper", &format!("lease ran out id=j{job:08x}")),
        }
        if event == events * 3 / 5 {
            for (gap, level, place, what) in [
                (11, "TRACE", "server::sweeper", "due count=32 first=j00000001 last=j0000003f"),
                (38, "DEBUG", "server::sweeper", "lease ran out id=j00000001"),
                (9, "DEBUG", "commands::pull", "put back before pull count=31"),
                (
                    14,
                    "DEBUG",
                    "commands::pull",
                    "leased id=j00000001 worker=3 generation=2 ttl=60000",
                ),
                (
                    12,
                    "DEBUG",
                    "commands::pull",
                    "leased id=j00000003 worker=3 generation=2 ttl=60000",
                ),
                (21, "DEBUG", "server::sweeper", "lease ran out id=j00000003"),
                (
                    16,
                    "DEBUG",
                    "commands::pull",
                    "leased id=j00000003 worker=3 generation=3 ttl=60000",
                ),
            ] {
                us += gap;
                line(us, level, place, what);
            }
        }
    }
    out
}

//! Answers that fit.

use ctx_core::Tokens;

use super::script;
use crate::RandomTranscript;
use crate::conformance::bench::Bench;
use crate::conformance::stop::Verdict;

/// Windows, from the smallest supported one.
const WINDOWS: [u32; 4] = [16_000, 24_000, 64_000, 200_000];

/// Sizes of random sessions: some fit most windows, some fit none.
const SIZES: [u32; 4] = [2_000, 15_000, 40_000, 120_000];

pub(super) fn answers_fit(bench: &Bench) -> Verdict {
    let mut requests = 0;
    for (seed, window) in WINDOWS.into_iter().enumerate() {
        let host = bench.host(window);
        let running = bench.engine(&host)?;
        for (place, size) in SIZES.into_iter().enumerate() {
            let seed = (seed * SIZES.len() + place) as u64;
            let name = format!("seed {seed}, {size} tokens, window {window}");
            let mut session = running.session(&format!("random-{seed}"));
            let drawn = RandomTranscript::seeded(seed).tokens(Tokens(size)).generate();
            let entries = drawn.entries();
            // Assembled in the middle and at the end.
            let (first, rest) = entries.split_at(entries.len() / 2);
            for part in [first, rest] {
                session.open(part)?;
                session.fitting_request(|| name.clone())?;
                session.next_turn();
                requests += 1;
            }
        }
        // No two of these texts fit: an engine that counts messages instead of tokens keeps too
        // many.
        let mut session = running.session("pasted");
        let text = "a line of what was pasted\n".repeat(window as usize / 26 * 9 / 5);
        for n in 0..6 {
            session.say(script::ask(format!("what is wrong with this?\n{text}")))?;
            session.fitting_request(|| format!("pasted text {n}, window {window}"))?;
            session.say(script::answer("nothing"))?;
            session.end_turn()?;
            requests += 1;
        }
        let mut session = running.session("growing");
        for n in 0..30 {
            session.say_turn(n, 6_000)?;
            session.fitting_request(|| format!("turn {n}, window {window}"))?;
            session.end_turn()?;
            requests += 1;
        }
    }
    Ok(Some(format!("{requests} requests, windows of 16,000 to 200,000")))
}

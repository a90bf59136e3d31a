//! Messages that must stay, and messages that must stay together.

use ctx_core::{Block, Message, Tokens};

use super::WINDOW;
use super::script::{self, ask, call};
use crate::RandomTranscript;
use crate::conformance::bench::Bench;
use crate::conformance::laws::{self, Groups};
use crate::conformance::stop::{Verdict, ensure};

/// Number of random sessions.
const SEEDS: u64 = 12;

pub(super) fn pairs(bench: &Bench) -> Verdict {
    let running = bench.engine(&bench.house(16_000))?;
    for seed in 0..SEEDS {
        // One in three is malformed: results that are late, missing or duplicated.
        let drawn = RandomTranscript::seeded(1_000 + seed).tokens(Tokens(30_000));
        let drawn = if seed % 3 == 0 { drawn } else { drawn.well_formed() };
        let mut sitting = running.session(&format!("pairs-{seed}"));
        sitting.open(&drawn.generate().entries())?;
        let groups = Groups::of(&sitting.view);
        sitting.assemble()?;
        groups.are_whole_in(&sitting.view)?;
        sitting.finish()?;
        laws::pairs(&sitting.view)?;
    }
    // Parallel calls, with the session ending in the middle of them.
    let mut sitting = running.session("parallel");
    for n in 0..40 {
        sitting.say(ask(format!("part {n}")))?;
        let calls = (0..3).flat_map(|m| call(format!("c{n}-{m}")).blocks);
        sitting.say(Message::new(ctx_core::Role::Assistant, calls.collect()))?;
        for m in 0..3 {
            sitting.say(Message::tool_result(format!("c{n}-{m}"), "found it\n".repeat(400)))?;
        }
        let groups = Groups::of(&sitting.view);
        sitting.assemble()?;
        groups.are_whole_in(&sitting.view)?;
        sitting.finish()?;
        laws::pairs(&sitting.view)?;
        sitting.end_turn()?;
    }
    Ok(None)
}

pub(super) fn must_stay(bench: &Bench) -> Verdict {
    let running = bench.engine(&bench.house(WINDOW))?;
    let mut sitting = running.session("kept");
    sitting.say(script::system())?;
    for n in 0..40 {
        let pinned = sitting.say(ask(format!("standing order {n}: never touch file_{n}.rs")))?;
        if n % 8 == 0 {
            sitting.pin(&pinned);
        }
        for message in script::turn(n, 5_000) {
            sitting.say(message)?;
            // Assembled after every message: directly after the user's newest message, and in the
            // middle of a tool call.
            let must_stay = laws::must_stay(&sitting.view);
            sitting.assemble()?;
            laws::are_there(&sitting.view, &must_stay)?;
            sitting.finish()?;
            laws::are_there(&sitting.view, &must_stay)?;
        }
        sitting.end_turn()?;
    }
    Ok(None)
}

pub(super) fn stable(bench: &Bench) -> Verdict {
    let running = bench.engine(&bench.house(16_000))?;
    let mut sitting = running.session("stable");
    sitting.say(script::system())?;
    for n in 0..30 {
        for message in script::turn(n, 3_000) {
            sitting.say(message)?;
        }
        sitting.request()?;
        let (sent, added) = (laws::messages(&sitting.view)?, addition(&sitting.view));
        sitting.request()?;
        let again = laws::messages(&sitting.view)?;
        let differs = sent.iter().zip(&again).position(|(one, other)| one.blocks != other.blocks);
        let differs = differs.or((sent.len() != again.len()).then(|| sent.len().min(again.len())));
        let differs = match differs {
            Some(place) => Some(format!("message {place}")),
            None if added == addition(&sitting.view) => None,
            None => Some("what it adds to the system prompt".to_owned()),
        };
        ensure(
            differs.is_none(),
            || {
                let what = differs.unwrap_or_default();
                format!("turn {n}: asked again with nothing new, it changes {what}")
            },
            "decide by what the session holds: no time, no random number; and leave alone what was \
             cut already",
        )?;
        sitting.end_turn()?;
    }
    // Another message at the end of a session that easily fits changes nothing before it.
    let mut sitting = running.session("roomy");
    let id = sitting.say(ask("hello"))?;
    sitting.request()?;
    sitting.say(Message::new(ctx_core::Role::Assistant, vec![Block::text("hello to you")]))?;
    sitting.request()?;
    ensure(
        laws::live(&sitting.view).contains(&id),
        || "a message is dropped from a session that easily fits".to_owned(),
        "do not edit a session that fits",
    )?;
    Ok(None)
}

fn addition(view: &ctx_core::ContextView) -> Option<String> {
    view.system_addition().map(str::to_owned)
}

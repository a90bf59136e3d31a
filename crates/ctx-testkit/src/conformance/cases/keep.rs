//! Protected messages, and messages that must stay together.

use ctx_core::{Block, Message, Tokens};

use super::WINDOW;
use super::script::{self, ask, call};
use crate::RandomTranscript;
use crate::conformance::bench::Bench;
use crate::conformance::laws::{self, Groups};
use crate::conformance::sitting::TestSession;
use crate::conformance::stop::{Stop, Verdict, ensure};

/// Number of random sessions.
const SEEDS: u64 = 12;

pub(super) fn pairs(bench: &Bench) -> Verdict {
    let running = bench.engine(&bench.host(16_000))?;
    for seed in 0..SEEDS {
        // One in three is malformed: results that are late, missing or duplicated.
        let drawn = RandomTranscript::seeded(1_000 + seed).tokens(Tokens(30_000));
        let drawn = if seed % 3 == 0 { drawn } else { drawn.well_formed() };
        let mut session = running.session(&format!("pairs-{seed}"));
        session.open(&drawn.generate().entries())?;
        paired_request(&mut session)?;
    }
    // Parallel calls, with the session ending in the middle of them.
    let mut session = running.session("parallel");
    for n in 0..40 {
        session.say(ask(format!("part {n}")))?;
        let calls = (0..3).flat_map(|m| call(format!("c{n}-{m}")).blocks);
        session.say(Message::new(ctx_core::Role::Assistant, calls.collect()))?;
        for m in 0..3 {
            session.say(Message::tool_result(format!("c{n}-{m}"), "found it\n".repeat(400)))?;
        }
        paired_request(&mut session)?;
        session.end_turn()?;
    }
    Ok(None)
}

/// Makes a request, and checks that calls and results are still together.
fn paired_request(session: &mut TestSession<'_>) -> Result<(), Stop> {
    let groups = Groups::of(&session.view);
    session.assemble()?;
    groups.are_whole_in(&session.view)?;
    session.finish()?;
    laws::pairs(&session.view)
}

pub(super) fn must_stay(bench: &Bench) -> Verdict {
    let running = bench.engine(&bench.host(WINDOW))?;
    let mut session = running.session("kept");
    session.say(script::system())?;
    for n in 0..40 {
        let pinned = session.say(ask(format!("standing order {n}: never touch file_{n}.rs")))?;
        if n % 8 == 0 {
            session.pin(&pinned);
        }
        for message in script::turn(n, 5_000) {
            session.say(message)?;
            // Assembled after every message: directly after the user's newest message, and in the
            // middle of a tool call.
            let must_stay = laws::must_stay(&session.view);
            session.assemble()?;
            laws::are_there(&session.view, &must_stay)?;
            session.finish()?;
            laws::are_there(&session.view, &must_stay)?;
        }
        session.end_turn()?;
    }
    Ok(None)
}

pub(super) fn stable(bench: &Bench) -> Verdict {
    let running = bench.engine(&bench.host(16_000))?;
    let mut session = running.session("stable");
    session.say(script::system())?;
    for n in 0..30 {
        session.say_turn(n, 3_000)?;
        session.request()?;
        let (sent, added) = (laws::messages(&session.view)?, addition(&session.view));
        session.request()?;
        let again = laws::messages(&session.view)?;
        let differs = sent.iter().zip(&again).position(|(one, other)| one.blocks != other.blocks);
        let differs = differs.or((sent.len() != again.len()).then(|| sent.len().min(again.len())));
        let differs = match differs {
            Some(place) => Some(format!("message {place}")),
            None if added == addition(&session.view) => None,
            None => Some("what it adds to the system prompt".to_owned()),
        };
        ensure(
            differs.is_none(),
            || {
                let what = differs.unwrap_or_default();
                format!("turn {n}: a second call without a new message changes {what}")
            },
            "decide from the session alone, without time or random numbers, and keep earlier cuts",
        )?;
        session.end_turn()?;
    }
    // If a session easily fits, another message at its end changes nothing before it.
    let mut session = running.session("roomy");
    let id = session.say(ask("hello"))?;
    session.request()?;
    session.say(Message::new(ctx_core::Role::Assistant, vec![Block::text("hello to you")]))?;
    session.request()?;
    ensure(
        laws::live(&session.view).contains(&id),
        || "a message is dropped from a session that easily fits".to_owned(),
        "do not edit a session that fits",
    )?;
    Ok(None)
}

fn addition(view: &ctx_core::ContextView) -> Option<String> {
    view.system_addition().map(str::to_owned)
}

//! The engine's info, and the order of calls.

use std::sync::Arc;

use ctx_core::{EngineState, Entry, EntryId, NodeState};

use super::{WINDOW, script};
use crate::conformance::bench::Bench;
use crate::conformance::laws;
use crate::conformance::stop::{Stop, Verdict, ensure};

/// Maximum length of id and version, in characters.
const MAX_NAME: usize = 100;

pub(super) fn hello(bench: &Bench) -> Verdict {
    let host = bench.host(WINDOW);
    let running = bench.engine(&host)?;
    // An engine that is not built in starts on first use.
    running.session("hello").bootstrap().map_err(Stop::fatal)?;
    let info = running.engine.info().clone();
    let is_id = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    ensure(
        !info.id.is_empty() && info.id.len() <= MAX_NAME && info.id.chars().all(is_id),
        || format!("its id is '{}'", info.id),
        "use an id that people can write in a configuration: letters, digits, '-', '_' and '.'",
    )?;
    ensure(
        !info.name.trim().is_empty() && !info.name.chars().any(char::is_control),
        || "it has no name".to_owned(),
        "give a name for people, for example the id",
    )?;
    let mut numbers = info.version.split(['.', '-', '+']);
    let is_number = |part: Option<&str>| part.is_some_and(|part| part.parse::<u64>().is_ok());
    ensure(
        info.version.len() <= MAX_NAME && (0..3).all(|_| is_number(numbers.next())),
        || format!("its version is '{}'", info.version),
        "give a version of three numbers, such as 1.0.0",
    )?;
    if let Some(health) = running.engine.health() {
        let said = health.last_error.map(|error| error.message).unwrap_or_default();
        ensure(
            health.state == EngineState::Ok,
            || format!("it is {} after its start: {said}", health.state.name()),
            "look at the engine's own log",
        )?;
    }
    let second = bench.engine(&bench.host(WINDOW))?;
    second.session("hello").bootstrap()?;
    ensure(
        *second.engine.info() == info,
        || "a second instance has another info".to_owned(),
        "return the same info in every process: hosts cache it",
    )?;
    Ok(Some(format!("{} {}", info.id, info.version)))
}

pub(super) fn lifecycle(bench: &Bench) -> Verdict {
    let host = bench.host(WINDOW);
    let running = bench.engine(&host)?;
    let mut session = running.session("life");
    session.open(&script::session(20, 2_000))?;
    session.bootstrap()?;
    for n in 0..4 {
        let view = session.view.id().clone();
        for message in script::turn(n, 400) {
            session.say(message)?;
            session.assemble()?;
            ensure(
                *session.view.id() == view,
                || "assemble returns another view than it received".to_owned(),
                "edit the view of the request: it remembers what was sent",
            )?;
            session.finish()?;
        }
        session.commit(&format!("turn-{n}"))?;
        session.end_turn()?;
    }
    drop(session);
    running.dispose()?;

    // A host that calls none of the optional verbs, and opens a session with a history.
    let running = bench.engine(&bench.host(WINDOW))?;
    let mut session = running.session("bare");
    session.open(&script::session(40, 4_000))?;
    session.request()?;
    Ok(None)
}

pub(super) fn ingest_twice(bench: &Bench) -> Verdict {
    let host = bench.host(WINDOW);
    let (once, twice) = (bench.engine(&host)?, bench.engine(&bench.host(WINDOW))?);
    let (mut one, mut two) = (once.session("s"), twice.session("s"));
    for n in 0..6 {
        for (at, message) in script::turn(n, 300).into_iter().enumerate() {
            let entry = Arc::new(Entry::in_memory(format!("{n}-{at}"), message));
            one.ingest(&entry)?;
            one.open(std::slice::from_ref(&entry))?;
            two.ingest(&entry)?;
            let again = two.ingest(&entry)?;
            ensure(
                !again.ingested,
                || format!("message {n}-{at} was sent twice, and ingested twice"),
                "answer `ingested: false` to a message that is known by its id",
            )?;
            two.open(&[entry])?;
        }
        one.request()?;
        two.request()?;
        laws::nothing_doubled(&two.view)?;
        ensure(
            laws::live(&one.view) == laws::live(&two.view),
            || "messages that were sent twice change the request".to_owned(),
            "ignore a message with a known id",
        )?;
    }
    Ok(None)
}

pub(super) fn two_sessions(bench: &Bench) -> Verdict {
    const NAMES: [&str; 2] = ["alpha", "omega"];
    let running = bench.engine(&bench.host(16_000))?;
    let mut sessions = NAMES.map(|name| running.session(name));
    for n in 0..24 {
        for (session, name) in sessions.iter_mut().zip(NAMES) {
            // The marker is in every message, so that a summary of the other session is detected.
            let marked = |mut message: ctx_core::Message| {
                if message.tool_calls().next().is_none() && message.tool_results().next().is_none()
                {
                    message.blocks.push(ctx_core::Block::text(format!("the {name}word is {n}")));
                }
                message
            };
            for message in script::turn(n, 3_000) {
                session.say(marked(message))?;
            }
            session.request()?;
            session.end_turn()?;
        }
    }
    for ((session, name), other) in sessions.iter().zip(NAMES).zip(NAMES.iter().rev()) {
        let word = format!("{other}word");
        let addition = session.view.system_addition().unwrap_or_default();
        let mut strays = addition.contains(&word).then(|| EntryId::from("system prompt"));
        for node in session.view.nodes() {
            let changed = node.is_live() && node.state() != NodeState::Kept;
            let message = node.message().map_err(|error| Stop::error("reading", &error))?;
            if changed && message.plain_text().contains(&word) {
                strays.get_or_insert_with(|| node.entry().id().clone());
            }
        }
        ensure(
            strays.is_none(),
            || format!("a request of session '{name}' contains text of session '{other}'"),
            "keep state separately by `session_id`",
        )?;
    }
    Ok(None)
}

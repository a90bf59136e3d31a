//! Compacting a session permanently.

use std::sync::Arc;

use ctx_core::{Compacted, CompactionTrigger, Entry, LeaseState, Tokens};

use super::calls::goes_on;
use super::{WINDOW, script};
use crate::conformance::bench::Bench;
use crate::conformance::laws::Groups;
use crate::conformance::sitting::TestSession;
use crate::conformance::stop::{Stop, Verdict, ensure};

/// A compaction that was applied.
pub(super) struct Done {
    pub(super) said: Compacted,
    pub(super) before: Tokens,
    pub(super) after: Tokens,
}

/// The outcome of a call to compact.
pub(super) enum Tried {
    Compacted(Box<Done>),
    /// The engine leaves the compaction to the host.
    Declined(String),
}

/// Compacts a session of these entries, and applies the engine's answer.
pub(super) fn try_compact(
    session: &mut TestSession<'_>,
    entries: &[Arc<Entry>],
    attempt: u32,
) -> Result<Tried, Stop> {
    // An engine that is not built in declares its verbs only once it is started.
    session.bootstrap()?;
    if let Some(why) = no_lease(session) {
        return Ok(Tried::Declined(why));
    }
    session.reopen(entries)?;
    let is_owner = session.running.engine.info().owns_compaction;
    let asked = session.compact(|request| {
        request.force = true;
        request.attempt = attempt;
        request.trigger = CompactionTrigger::Overflow;
    });
    let answer = match asked {
        Err(error) if is_owner => return Err(Stop::error("compact", &error)),
        Err(error) => return Ok(Tried::Declined(error.to_string())),
        Ok(answer) => answer,
    };
    let why = answer.reason.unwrap_or_else(|| "it gives no reason".to_owned());
    let Some(said) = answer.result.filter(|_| answer.ok && answer.compacted) else {
        ensure(
            !is_owner,
            || format!("it requests the lease on compaction, but compacts nothing: {why}"),
            "compact the messages before the newest turns, or do not request the lease",
        )?;
        return Ok(Tried::Declined(why));
    };
    session.reopen(entries)?;
    let view = &mut session.view;
    let (before, groups) = (view.total(), Groups::of(view));
    view.compact(said.clone(), "conformance-summary", "conformance", "compacted").map_err(
        |error| {
            let why = "let the first kept message begin a group of the session";
            Stop::failed(format!("the compaction cannot be applied: {error}"), why)
        },
    )?;
    groups.are_whole_in(view)?;
    let after = view.total();
    ensure(
        after < before,
        || format!("the compaction makes {after} tokens of {before}"),
        "cut later or write less, or decline",
    )?;
    Ok(Tried::Compacted(Box::new(Done { said, before, after })))
}

/// Returns why a supervised engine is not called to compact: its host would compact instead.
fn no_lease(session: &TestSession<'_>) -> Option<String> {
    let health = session.running.engine.health()?;
    let is_asked = matches!(health.lease, LeaseState::Granted | LeaseState::Withdrawn);
    (!is_asked).then(|| "it does not request the lease".to_owned())
}

fn declined(why: &str) -> Stop {
    Stop::skipped(format!("it leaves compaction to its host: {why}"))
}

pub(super) fn compaction(bench: &Bench) -> Verdict {
    let host = bench.host(WINDOW);
    let running = bench.engine(&host)?;
    let mut session = running.session("s");
    let entries = script::session(160, 60_000);
    let done = match try_compact(&mut session, &entries, 1)? {
        Tried::Declined(why) => return Err(declined(&why)),
        Tried::Compacted(done) => done,
    };
    ensure(
        !done.said.summary.trim().is_empty() || done.said.details.is_some(),
        || "history was dropped without a summary".to_owned(),
        "write a summary; the last resort is a line that says what is missing",
    )?;
    // The session continues with the summary instead of its history.
    for n in 0..10 {
        session.say_turn(n, 2_000)?;
        goes_on(&mut session, &format!("turn {n} after the compaction"))?;
    }
    // A target set by the host is respected, if the protected rows permit it.
    let target = Tokens(12_000);
    session.reopen(&entries)?;
    let answer = session
        .compact(|request| {
            request.force = true;
            request.token_budget = Some(target);
        })
        .map_err(|error| Stop::error("compact", &error))?;
    if let Some(said) = answer.result {
        session.reopen(&entries)?;
        session
            .view
            .compact(said, "conformance-target", "conformance", "compacted")
            .map_err(|error| Stop::error("carrying out", &error))?;
        let after = session.view.total();
        ensure(
            after <= target,
            || format!("the target is {target} tokens, the compaction leaves {after}"),
            "keep less, until the kept rows and the summary are within `tokenBudget`",
        )?;
    }
    Ok(Some(format!("{} tokens become {}", done.before, done.after)))
}

pub(super) fn deeper(bench: &Bench) -> Verdict {
    let entries = script::session(160, 60_000);
    let mut sizes = Vec::new();
    for attempt in 1..=3 {
        let running = bench.engine(&bench.host(WINDOW))?;
        let mut session = running.session("s");
        match try_compact(&mut session, &entries, attempt)? {
            Tried::Declined(why) => return Err(declined(&why)),
            Tried::Compacted(done) => sizes.push(done.after),
        }
    }
    let said = || {
        let sizes: Vec<String> = sizes.iter().map(ToString::to_string).collect();
        format!("attempts 1, 2 and 3 leave {} tokens", sizes.join(", "))
    };
    ensure(
        sizes.is_sorted_by(|one, next| one >= next) && sizes.first() > sizes.last(),
        said,
        "keep less with each `attempt`: the previous one was not enough",
    )?;
    Ok(Some(said()))
}

pub(super) fn nothing(bench: &Bench) -> Verdict {
    let running = bench.engine(&bench.host(WINDOW))?;
    let mut session = running.session("small");
    session.bootstrap()?;
    if let Some(why) = no_lease(&session) {
        return Err(declined(&why));
    }
    for (entries, what) in
        [(Vec::new(), "an empty session"), (script::session(4, 200), "a session of six messages")]
    {
        session.reopen(&entries)?;
        let answer = match session.compact(|_| {}) {
            Ok(answer) => answer,
            Err(error) if running.engine.info().owns_compaction => {
                return Err(Stop::error("compact", &error));
            }
            Err(error) => return Err(declined(&error.to_string())),
        };
        if !answer.ok && !running.engine.info().owns_compaction {
            return Err(declined(&answer.reason.unwrap_or_default()));
        }
        ensure(
            answer.ok,
            || {
                let why = answer.reason.clone().unwrap_or_default();
                format!("{what}: it declines, as after a failure: {why}")
            },
            "answer `ok: true, compacted: false` with the reason",
        )?;
        ensure(
            answer.compacted == answer.result.is_some(),
            || format!("{what}: its result contradicts compacted: {}", answer.compacted),
            "give a `result` if, and only if, something was compacted",
        )?;
        let Some(said) = answer.result else { continue };
        session.reopen(&entries)?;
        let before = session.view.total();
        let done = session.view.compact(said, "conformance-small", "conformance", "compacted");
        done.map_err(|error| Stop::error("carrying out", &error))?;
        let after = session.view.total();
        ensure(
            after < before,
            || format!("{what}: the compaction makes {after} tokens of {before}"),
            "answer that there is nothing to compact",
        )?;
    }
    Ok(None)
}

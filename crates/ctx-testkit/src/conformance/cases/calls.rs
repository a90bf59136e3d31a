//! Abandoned and failing calls.

use super::{WINDOW, script};
use crate::conformance::bench::Bench;
use crate::conformance::laws;
use crate::conformance::sitting::TestSession;
use crate::conformance::stop::{Stop, Verdict, ensure};

/// Number of polls after which a call is dropped.
const POLLS: [u32; 3] = [1, 2, 5];

/// Checks that the session works: one ordinary request.
pub(super) fn goes_on(session: &mut TestSession<'_>, what: &str) -> Result<(), Stop> {
    let must_stay = laws::must_stay(&session.view);
    session.assemble()?;
    laws::fits(&session.view, || what.to_owned())?;
    laws::are_there(&session.view, &must_stay)?;
    session.finish()?;
    laws::nothing_doubled(&session.view)?;
    laws::pairs(&session.view)?;
    session.end_turn()
}

pub(super) fn rejected(bench: &Bench) -> Verdict {
    let running = bench.engine(&bench.host(WINDOW))?;
    let control = bench.engine(&bench.host(WINDOW))?;
    let (mut session, mut other) = (running.session("s"), control.session("s"));
    let entries = script::session(120, 60_000);
    for part in [&entries[..80], &entries[..]] {
        // The answer is discarded: the session is unchanged.
        session.reopen(part)?;
        session.assemble_and_discard(None)?;
        session.reopen(part)?;
        goes_on(&mut session, "after an answer that was not used")?;
        other.reopen(part)?;
        goes_on(&mut other, "in another instance")?;
    }
    let (after, never) = (laws::live(&session.view), laws::live(&other.view));
    let kept = |ids: &[ctx_core::EntryId]| ids.iter().filter(|id| is_of(&entries, id)).count();
    ensure(
        kept(&after) >= kept(&never),
        || {
            let (after, never) = (kept(&after), kept(&never));
            format!("it keeps {after} messages after a rejected answer, and {never} otherwise")
        },
        "trust the host: an answer took effect only if the next call shows it",
    )?;
    Ok(None)
}

fn is_of(entries: &[std::sync::Arc<ctx_core::Entry>], id: &ctx_core::EntryId) -> bool {
    entries.iter().any(|entry| entry.id() == id)
}

pub(super) fn cancel(bench: &Bench) -> Verdict {
    let entries = script::session(120, 60_000);
    for polls in POLLS {
        // The model never answers, so that an engine that calls it is interrupted in the middle.
        let running = bench.engine(&bench.host_without_answers(WINDOW))?;
        let mut session = running.session("s");
        session.reopen(&entries)?;
        session.assemble_and_discard(Some(polls))?;
        session.reopen(&entries)?;
        goes_on(&mut session, "after a request that was given up")?;
        session.reopen(&entries)?;
        session.compact_and_drop(polls);
        session.reopen(&entries)?;
        goes_on(&mut session, "after a compaction that was given up")?;
        // The other session must be unaffected.
        let mut other = running.session("other");
        other.reopen(&entries)?;
        goes_on(&mut other, "another session")?;
    }
    Ok(None)
}

pub(super) fn deadline(bench: &Bench) -> Verdict {
    let running = bench.engine(&bench.host_without_answers(WINDOW))?;
    let mut session = running.session("s");
    let entries = script::session(200, 90_000);
    session.reopen(&entries)?;
    goes_on(&mut session, "with a model that never answers")?;
    session.reopen(&entries)?;
    // It may fail, but must return an error and keep running.
    let _ = session.compact(|request| request.force = true);
    session.reopen(&entries)?;
    goes_on(&mut session, "after a compaction without a model")?;
    Ok(None)
}

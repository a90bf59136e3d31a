//! Abandoned and failing calls.

use super::WINDOW;
use super::script;
use crate::conformance::bench::Bench;
use crate::conformance::laws;
use crate::conformance::sitting::Sitting;
use crate::conformance::stop::{Stop, Verdict, ensure};

/// Number of polls after which a call is dropped.
const POLLS: [u32; 3] = [1, 2, 5];

/// Checks after an abandoned call that the session still works: one ordinary request.
fn goes_on(sitting: &mut Sitting<'_>, what: &str) -> Result<(), Stop> {
    let must_stay = laws::must_stay(&sitting.view);
    sitting.assemble()?;
    laws::fits(&sitting.view, || what.to_owned())?;
    laws::are_there(&sitting.view, &must_stay)?;
    sitting.finish()?;
    laws::nothing_doubled(&sitting.view)?;
    laws::pairs(&sitting.view)?;
    sitting.end_turn()
}

pub(super) fn rejected(bench: &Bench) -> Verdict {
    let running = bench.engine(&bench.house(WINDOW))?;
    let control = bench.engine(&bench.house(WINDOW))?;
    let (mut sitting, mut other) = (running.session("s"), control.session("s"));
    let entries = script::session(120, 60_000);
    for part in [&entries[..80], &entries[..]] {
        // The answer is discarded: the session is unchanged.
        sitting.reopen(part)?;
        sitting.assemble_in_vain(None)?;
        sitting.reopen(part)?;
        goes_on(&mut sitting, "after an answer that was not used")?;
        other.reopen(part)?;
        goes_on(&mut other, "in another instance")?;
    }
    let (after, never) = (laws::live(&sitting.view), laws::live(&other.view));
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
        let running = bench.engine(&bench.house_without_answers(WINDOW))?;
        let mut sitting = running.session("s");
        sitting.reopen(&entries)?;
        sitting.assemble_in_vain(Some(polls))?;
        sitting.reopen(&entries)?;
        goes_on(&mut sitting, "after a request that was given up")?;
        sitting.reopen(&entries)?;
        sitting.compact_in_vain(polls);
        sitting.reopen(&entries)?;
        goes_on(&mut sitting, "after a compaction that was given up")?;
        // The other session must be unaffected.
        let mut other = running.session("other");
        other.reopen(&entries)?;
        goes_on(&mut other, "another session")?;
    }
    Ok(None)
}

pub(super) fn deadline(bench: &Bench) -> Verdict {
    let running = bench.engine(&bench.house_without_answers(WINDOW))?;
    let mut sitting = running.session("s");
    let entries = script::session(200, 90_000);
    sitting.reopen(&entries)?;
    goes_on(&mut sitting, "with a model that never answers")?;
    sitting.reopen(&entries)?;
    // It may fail, but must return an error and keep running.
    let _ = sitting.compact(|mut request| {
        request.force = true;
        request
    });
    sitting.reopen(&entries)?;
    goes_on(&mut sitting, "after a compaction without a model")?;
    Ok(None)
}

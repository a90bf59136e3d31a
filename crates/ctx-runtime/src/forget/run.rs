//! The order of it all.

use std::collections::HashSet;
use std::path::PathBuf;

use ctx_core::{Error, ErrorKind, Result, Timestamp};
use ctx_session::erase::{Erased, Erasing, erase_beside, erase_from_overlay, erase_from_session};
use ctx_session::key::FileId;
use ctx_session::overlay::Overlay;
use ctx_session::paths::Home;

use super::memories::{InMemory, check_unknown};
use super::places::Places;
use super::plan::{Plan, Session};
use super::sweep::files_holding;
use super::{Forget, Forgotten, Remembered, StillHeld};

/// Shorter texts are in everything.
const SHORTEST: usize = 3;

const THEIRS: &str = "a file of another program is not written; ctx reads it there no more";

/// Forgets what was said: in transcripts, in what stands beside them, and in the memories of these
/// agents. What could not be reached, and who still holds it, is in the report.
///
/// # Errors
///
/// [`ErrorKind::InvalidInput`] where it is not clear what is meant, [`ErrorKind::NotFound`] where
/// nobody knows it; [`ErrorKind::Locked`] and [`ErrorKind::Io`] where a memory cannot be written: then
/// no transcript was touched, and the same call does it another time.
pub fn forget(
    home: &Home,
    what: &Forget,
    memories: &[Remembered],
    now: Timestamp,
) -> Result<Forgotten> {
    check(what)?;
    if !what.dry_run {
        // What a journal still holds comes into the sessions, and goes from there.
        ctx_session::group_commit::recover(home)?;
    }
    let agents: Vec<FileId> = memories.iter().map(|memory| memory.agent.clone()).collect();
    let places = Places::of(home, &agents, &what.files)?;
    let (mut plan, lost_overlays, warnings) = Plan::of(home, what, places)?;
    let mut report = Forgotten::new(what.dry_run, warnings);
    let in_memories = memories
        .iter()
        .map(|memory| InMemory::of(home, what, &plan, memory))
        .collect::<Result<Vec<_>>>()?;
    let archived: Vec<_> =
        in_memories.iter().flat_map(|memory| memory.only_archived(&plan.unknown)).collect();
    check_unknown(&plan.unknown, &archived)?;
    for session in &mut plan.sessions {
        report.messages.append(&mut session.messages);
    }
    report.messages.extend(archived.into_iter().map(|(_, message)| message));
    for memory in &in_memories {
        report.agents.push(if what.dry_run { memory.count() } else { memory.forget()? });
    }
    if plan.needle.is_some() && what.session.is_none() {
        for overlay in lost_overlays {
            let done = lost(&plan, &overlay, what.dry_run);
            report.take(done.map(|erased| erased.into_iter().collect()), overlay);
        }
    }
    for session in &plan.sessions {
        let done = in_session(home, what, &plan, session, now);
        report.take(done, session.path.clone());
        if !session.is_ours && (session.holds || !session.entries.is_empty()) {
            let (path, why) = (session.path.clone(), THEIRS.to_owned());
            report.still_held.push(StillHeld { path, why });
        }
    }
    if what.is_whole() && report.is_nothing() && plan.sessions.is_empty() {
        return Err(Error::new(ErrorKind::NotFound, "there is no session of that name")
            .with("session", what.session.as_deref().unwrap_or_default())
            .hint("`ctx sessions` lists their keys; the path of a transcript will do as well"));
    }
    if !what.dry_run {
        report.messages.iter_mut().for_each(|message| message.begins = None);
        look_again(home, what, &mut report)?;
    }
    Ok(report)
}

/// Refuses what cannot be meant.
fn check(what: &Forget) -> Result<()> {
    let nothing = what.entries.is_empty() && what.session.is_none() && what.matching.is_none();
    let is_short = |text: &String| text.trim().chars().count() < SHORTEST;
    if nothing {
        return Err(Error::new(ErrorKind::InvalidInput, "it is not said what to forget")
            .hint("give --entry, --session or --matching"));
    }
    if what.matching.as_ref().is_some_and(is_short) {
        return Err(Error::new(ErrorKind::InvalidInput, "the text to forget is too short")
            .with("fewest characters", SHORTEST)
            .hint("every message holds a text as short as that: give more of it"));
    }
    let is_empty = |text: &String| text.trim().is_empty();
    if what.entries.iter().chain(&what.session).any(is_empty) {
        return Err(Error::new(ErrorKind::InvalidInput, "a name is empty")
            .hint("name the entry or the session"));
    }
    Ok(())
}

fn lost(plan: &Plan, overlay: &std::path::Path, dry_run: bool) -> Result<Option<Erased>> {
    let holds = |text: &str| plan.needle.as_ref().is_some_and(|needle| needle.is_in(text));
    let entries = HashSet::new();
    let erasing = Erasing { entries: &entries, all: false, derived: &holds, holds: &holds };
    erase_from_overlay(overlay, &erasing, dry_run)
}

/// Erases what is to go from a transcript and what stands beside it: that first, as the transcript
/// tells what it was.
fn in_session(
    home: &Home,
    what: &Forget,
    plan: &Plan,
    session: &Session,
    now: Timestamp,
) -> Result<Vec<Erased>> {
    let holds = |text: &str| plan.needle.as_ref().is_some_and(|needle| needle.is_in(text));
    let derived = |text: &str| session.only.are_in(text);
    let Session { path, entries, all, .. } = session;
    let erasing = Erasing { entries, all: *all, derived: &derived, holds: &holds };
    if !session.is_ours {
        let erased = erase_beside(home, path, &erasing, now, what.dry_run)?;
        return Ok(erased.into_iter().collect());
    }
    let overlay = Overlay::of(home, path)?;
    let mut erased = Vec::new();
    if overlay.path().exists() {
        erased.extend(erase_from_overlay(overlay.path(), &erasing, what.dry_run)?);
    }
    erased.extend(erase_from_session(path, &erasing, what.dry_run)?.unwrap_or_default());
    Ok(erased)
}

/// Looks whether anything in the home still holds the text.
fn look_again(home: &Home, what: &Forget, report: &mut Forgotten) -> Result<()> {
    let Some(text) = what.matching.as_deref().filter(|_| what.session.is_none()) else {
        return Ok(());
    };
    if !home.root().is_dir() {
        return Ok(());
    }
    for path in files_holding(home.root(), text)? {
        if report.still_held.iter().any(|held| held.path == path) {
            continue;
        }
        let why = match path.extension().and_then(|e| e.to_str()) {
            Some("journal") => "a process that is running has it open",
            _ => "ctx does not know it for something that was drawn from a message",
        };
        report.still_held.push(StillHeld { path, why: why.to_owned() });
    }
    Ok(())
}

impl Forgotten {
    /// Takes in what came of one transcript. One that could not be reached is named, and does not
    /// keep the others from being done.
    fn take(&mut self, done: Result<Vec<Erased>>, path: PathBuf) {
        match done {
            Ok(erased) => self.files.extend(erased),
            Err(error) => {
                self.complete = false;
                self.still_held.push(StillHeld { path, why: error.to_string() });
            }
        }
    }
}

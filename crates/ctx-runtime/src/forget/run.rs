//! The order of it all.

use std::collections::HashMap;
use std::path::PathBuf;

use ctx_core::{EntryId, Result, Timestamp};
use ctx_memory::SegmentId;
use ctx_session::erase::{Erased, Erasing, erase_beside, erase_from_overlay, erase_from_session};
use ctx_session::key::FileId;
use ctx_session::overlay::Overlay;
use ctx_session::paths::Home;

use super::lost::Lost;
use super::memories::InMemory;
use super::places::Places;
use super::plan::{Plan, Session};
use super::sweep::{Seen, look};
use super::{Forget, Forgotten, ForgottenMessage, Remembered, StillHeld, check};

const THEIRS: &str = "a file of another program is not written; ctx reads it there no more";

/// What is to be forgotten, found: it can be shown, and what was shown is what is erased.
pub struct Forgetting<'m> {
    home: Home,
    what: Forget,
    plan: Plan,
    memories: Vec<InMemory<'m>>,
    lost: Vec<Lost>,
    /// Whether the session that was named is known to anybody.
    is_known: bool,
}

impl<'m> Forgetting<'m> {
    /// Finds what is to be forgotten: in transcripts, in what stands beside them, and in the memories
    /// of these agents.
    ///
    /// # Errors
    ///
    /// `ErrorKind::InvalidInput` where it is not clear what is meant, `ErrorKind::NotFound` where
    /// nobody knows it, `ErrorKind::Io` where something cannot be read.
    pub fn plan(home: &Home, what: Forget, memories: &'m [Remembered]) -> Result<Self> {
        check::asked(&what)?;
        if !what.dry_run {
            // What a journal still holds comes into the sessions, and goes from there.
            ctx_session::group_commit::recover(home)?;
        }
        let agents: Vec<FileId> = memories.iter().map(|memory| memory.agent.clone()).collect();
        let places = Places::of(home, &agents, &what.files)?;
        let mut plan = Plan::of(home, &what, places)?;
        let found = memories.iter().map(|memory| InMemory::of(home, &what, &plan, memory));
        let mut memories = found.collect::<Result<Vec<_>>>()?;
        let is_known = is_known(&what, &plan, &memories)?;
        // The name may be one of the keys that cannot be read.
        if let Some(error) = plan.damaged.take().filter(|_| !is_known) {
            return Err(error);
        }
        let archived: Vec<_> =
            memories.iter().flat_map(|memory| memory.named(&plan.unknown)).collect();
        let gone = memories.iter().flat_map(|memory| memory.only_archived(&plan));
        let gone: Vec<(String, EntryId)> = gone
            .filter_map(|of| Some((of.session_id.clone(), of.entry_id.as_deref()?.into())))
            .collect();
        let lost = plan.lost_overlays.iter().map(|overlay| Lost::of(&what, overlay, &gone));
        let lost = lost.collect::<Result<Vec<_>>>()?;
        let is_lost = |id: &&String| lost.iter().any(|lost| lost.knows(id));
        let unknown: Vec<String> = plan.unknown.iter().filter(|id| !is_lost(id)).cloned().collect();
        check::archived(&unknown, &archived)?;
        let mut traces = std::mem::take(&mut plan.traces);
        lost.iter().for_each(|lost| lost.trace(&mut traces));
        for memory in &memories {
            memory.trace(&plan, &mut traces)?;
        }
        plan.traces = traces;
        plan.trace_elsewhere(home);
        for memory in &mut memories {
            memory.find_derived(home, &what, &plan)?;
        }
        Ok(Self { home: home.clone(), what, plan, memories, lost, is_known })
    }

    /// What would be forgotten. Nothing is written.
    ///
    /// # Errors
    ///
    /// `ErrorKind::NotFound` where no session has that name.
    pub fn report(&self) -> Result<Forgotten> {
        let mut report = self.begin(true);
        report.agents = self.memories.iter().map(InMemory::count).collect();
        // Nothing is written, so no time is noted.
        self.transcripts(Timestamp(0), &mut report);
        self.check_found(&report)?;
        Ok(report)
    }

    /// Forgets it. What could not be reached, and who still holds it, is in the report.
    ///
    /// # Errors
    ///
    /// `ErrorKind::NotFound` where no session has that name; `ErrorKind::Locked` and
    /// `ErrorKind::Io` where a memory cannot be written: then no transcript was touched, and the
    /// same call does it another time.
    pub fn carry_out(self, now: Timestamp) -> Result<Forgotten> {
        let mut report = self.begin(false);
        for memory in &self.memories {
            report.agents.push(memory.forget()?);
        }
        self.transcripts(now, &mut report);
        self.check_found(&report)?;
        report.messages.iter_mut().for_each(|message| message.begins = None);
        self.look_again(&mut report);
        Ok(report)
    }

    fn begin(&self, dry_run: bool) -> Forgotten {
        let mut report = Forgotten::new(dry_run, self.plan.warnings.clone());
        let of_sessions = self.plan.sessions.iter().flat_map(|session| &session.messages);
        report.messages = of_sessions.cloned().collect();
        let mut archived: HashMap<SegmentId, ForgottenMessage> = HashMap::new();
        let of_archives = self.memories.iter().flat_map(|memory| memory.messages(&self.plan));
        for (segment, message) in of_archives {
            // Two agents may have archived the same.
            if archived.insert(segment, message.clone()).is_none() {
                report.messages.push(message);
            }
        }
        report.hint = self.hint(archived.len());
        report.still_held.extend(self.memories.iter().flat_map(InMemory::said_again).cloned());
        let unread = self.memories.iter().flat_map(InMemory::unread);
        for held in self.plan.unread.iter().chain(unread) {
            report.not_reached(held.clone());
        }
        report
    }

    /// Where else it may be: nobody notes which files were archived.
    fn hint(&self, archived: usize) -> Option<String> {
        const NAMED: &str = "a transcript outside of the home is looked into where it is named: \
                             `ctx memory forget FILE ...`";
        match archived {
            0 if self.what.files.is_empty()
                && self.plan.sessions.iter().all(Session::is_spared) =>
            {
                Some(format!("no transcript in the home says it; {NAMED}"))
            }
            0 => None,
            1 => Some(format!("1 message is in no transcript of the home; {NAMED}")),
            n => Some(format!("{n} messages are in no transcript of the home; {NAMED}")),
        }
    }

    /// Erases from transcripts, and from what stands beside those that are there and those that are
    /// not. One that could not be reached is named, and does not keep the others from being done.
    fn transcripts(&self, now: Timestamp, report: &mut Forgotten) {
        for lost in &self.lost {
            let done = lost.erase(&self.what, &self.plan, report.dry_run);
            report.take(done, lost.path.clone());
        }
        for notes in self.memories.iter().map(InMemory::notes) {
            if let Err(error) = notes.forget(&self.what, &self.plan, report) {
                report.warnings.push(format!("notes are not looked into: {error}"));
            }
        }
        for session in &self.plan.sessions {
            let done = self.in_session(session, now, report.dry_run);
            report.take(done, session.path.clone());
            if !session.is_ours && (session.holds || !session.entries.is_empty()) {
                let (path, why) = (session.path.clone(), THEIRS.to_owned());
                report.still_held.push(StillHeld { path, why });
            }
        }
    }

    fn check_found(&self, report: &Forgotten) -> Result<()> {
        let named = self.what.session.as_deref();
        match named.filter(|_| !self.is_known && report.is_nothing()) {
            Some(named) => Err(check::unknown_session(named)),
            None => Ok(()),
        }
    }

    /// Erases what is to go from a transcript and what stands beside it: that first, as the transcript
    /// tells what it was.
    fn in_session(&self, session: &Session, now: Timestamp, dry_run: bool) -> Result<Vec<Erased>> {
        let needle = self.plan.needle.as_ref();
        let holds = |text: &str| needle.is_some_and(|needle| needle.is_in(text));
        let derived = |text: &str| session.only.are_in(text);
        let Session { path, entries, all, .. } = session;
        let erasing = Erasing { entries, all: *all, derived: &derived, holds: &holds };
        if !session.is_ours {
            let erased = erase_beside(&self.home, path, &erasing, now, dry_run)?;
            return Ok(erased.into_iter().collect());
        }
        let overlay = Overlay::of(&self.home, path)?;
        let mut erased = Vec::new();
        if overlay.path().exists() {
            erased.extend(erase_from_overlay(overlay.path(), &erasing, dry_run)?);
        }
        erased.extend(erase_from_session(path, &erasing, dry_run)?.unwrap_or_default());
        Ok(erased)
    }

    /// Looks whether anything in the home still holds the text. What cannot be looked into may.
    fn look_again(&self, report: &mut Forgotten) {
        let needle = self.plan.needle.as_ref().filter(|_| self.what.session.is_none());
        let Some(needle) = needle.filter(|_| self.home.root().is_dir()) else { return };
        let Seen { holding, unread } = look(self.home.root(), needle);
        for path in holding {
            let why = match path.extension().and_then(|e| e.to_str()) {
                Some("journal") => "a process that is running has it open",
                _ => "ctx does not know it for something that was drawn from a message",
            };
            report.not_reached(StillHeld { path, why: why.to_owned() });
        }
        for path in unread {
            let why = "it cannot be read: whether it holds it is not known".to_owned();
            report.not_reached(StillHeld { path, why });
        }
    }
}

/// Whether anybody knows the session that was named, if one was.
fn is_known(what: &Forget, plan: &Plan, memories: &[InMemory<'_>]) -> Result<bool> {
    let Some(named) = what.session.as_deref() else { return Ok(true) };
    if plan.is_found || plan.lost_overlays.iter().any(|lost| lost.is_named(what)) {
        return Ok(true);
    }
    for memory in memories {
        if memory.knows(named)? {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Forgotten {
    /// Takes in what came of one transcript.
    fn take(&mut self, done: Result<Vec<Erased>>, path: PathBuf) {
        match done {
            Ok(erased) => self.files.extend(erased),
            Err(error) => self.not_reached(StillHeld { path, why: error.to_string() }),
        }
    }

    /// Takes note of what ctx should have erased and could not, once. The file of another program is
    /// not ctx's to write, and is named already.
    pub(super) fn not_reached(&mut self, held: StillHeld) {
        if self.still_held.iter().all(|known| known.path != held.path) {
            self.complete = false;
            self.still_held.push(held);
        }
    }
}

//! Runs the steps of forgetting in order.

use std::collections::HashMap;
use std::path::PathBuf;

use ctx_core::{EntryId, Result, Timestamp};
use ctx_search::SegmentId;
use ctx_session::key::FileId;
use ctx_session::{
    EraseCriteria, Erased, Home, Overlay, erase_in_overlay, erase_in_session,
    erase_orphaned_overlay,
};

use super::memory::MemoryTargets;
use super::overlays::OverlayTargets;
use super::sweep::{SweepResult, look};
use super::targets::{SessionTargets, Targets};
use super::transcripts::KnownTranscripts;
use super::{ForgetReport, ForgetRequest, ForgottenMessage, MemoryToErase, RemainingCopy, check};

const THEIRS: &str =
    "ctx does not write files of other programs; it ignores the erased messages there";

/// A plan of what to forget: exactly what its report shows is erased.
pub struct ForgetPlan<'m> {
    home: Home,
    what: ForgetRequest,
    plan: Targets,
    memories: Vec<MemoryTargets<'m>>,
    lost: Vec<OverlayTargets>,
    /// Whether the named session is known.
    is_known: bool,
}

impl<'m> ForgetPlan<'m> {
    /// Finds what to forget in transcripts, their side files, and the memories of these agents.
    ///
    /// # Errors
    ///
    /// `ErrorKind::InvalidInput` for an ambiguous request, `ErrorKind::NotFound` if nothing matches
    /// it, `ErrorKind::Io` if something cannot be read.
    pub fn plan(home: &Home, what: ForgetRequest, memories: &'m [MemoryToErase]) -> Result<Self> {
        check::request(&what)?;
        if !what.dry_run {
            // Write pending journal entries to the sessions first, to erase them there.
            ctx_session::recover_journals(&home.journals_dir())?;
        }
        let agents: Vec<FileId> = memories.iter().map(|memory| memory.agent.clone()).collect();
        let places = KnownTranscripts::of(home, &agents, &what.files)?;
        let mut plan = Targets::of(home, &what, places)?;
        let found = memories.iter().map(|memory| MemoryTargets::of(home, &what, &plan, memory));
        let mut memories = found.collect::<Result<Vec<_>>>()?;
        let is_known = is_known(&what, &plan, &memories)?;
        // The name may be one of the unreadable keys.
        if let Some(error) = plan.damaged.take().filter(|_| !is_known) {
            return Err(error);
        }
        let archived: Vec<_> =
            memories.iter().flat_map(|memory| memory.named(&plan.unknown)).collect();
        let gone = memories.iter().flat_map(|memory| memory.only_archived(&plan));
        let gone: Vec<(String, EntryId)> = gone
            .filter_map(|of| Some((of.session_id.clone(), of.entry_id.as_deref()?.into())))
            .collect();
        let lost =
            plan.lost_overlays.iter().map(|overlay| OverlayTargets::of(&what, overlay, &gone));
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

    /// Returns what would be forgotten. Nothing is written.
    ///
    /// # Errors
    ///
    /// `ErrorKind::NotFound` if no session has that name.
    pub fn report(&self) -> Result<ForgetReport> {
        let mut report = self.begin(true);
        report.agents = self.memories.iter().map(MemoryTargets::count).collect();
        // Nothing is written, so the time does not matter.
        self.transcripts(Timestamp(0), &mut report);
        self.check_found(&report)?;
        Ok(report)
    }

    /// Erases what the plan selects. The report lists what could not be reached, and which files
    /// still contain it.
    ///
    /// # Errors
    ///
    /// `ErrorKind::NotFound` if no session has that name; `ErrorKind::Locked` and `ErrorKind::Io`
    /// if a memory cannot be written: then no transcript was changed, and the call can be repeated.
    pub fn execute(self, now: Timestamp) -> Result<ForgetReport> {
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

    fn begin(&self, dry_run: bool) -> ForgetReport {
        let mut report = ForgetReport::new(dry_run, self.plan.warnings.clone());
        let of_sessions = self.plan.sessions.iter().flat_map(|session| &session.messages);
        report.messages = of_sessions.cloned().collect();
        let mut archived: HashMap<SegmentId, ForgottenMessage> = HashMap::new();
        let of_archives = self.memories.iter().flat_map(|memory| memory.messages(&self.plan));
        for (segment, message) in of_archives {
            // Two agents may have archived the same message.
            if archived.insert(segment, message.clone()).is_none() {
                report.messages.push(message);
            }
        }
        report.hint = self.hint(archived.len());
        report
            .still_held
            .extend(self.memories.iter().flat_map(|memory| memory.repeated.iter().cloned()));
        let unread = self.memories.iter().flat_map(|memory| &memory.unread);
        for held in self.plan.unread.iter().chain(unread) {
            report.not_reached(held.clone());
        }
        report
    }

    /// Returns a hint about transcripts outside the home: ctx does not record which of them were
    /// archived.
    fn hint(&self, archived: usize) -> Option<String> {
        const NAMED: &str = "to search a transcript outside of it, such as another agent's, name \
                             it: `ctx memory forget FILE ...`";
        match archived {
            0 if self.what.files.is_empty()
                && self.plan.sessions.iter().all(|session| session.messages.is_empty()) =>
            {
                Some(format!("no transcript in the home contains it; {NAMED}"))
            }
            0 => None,
            1 => Some(format!("1 message is in no transcript of the home; {NAMED}")),
            n => Some(format!("{n} messages are in no transcript of the home; {NAMED}")),
        }
    }

    /// Erases from transcripts and side files, also side files without a transcript. A file that
    /// cannot be reached is reported and does not stop the others.
    fn transcripts(&self, now: Timestamp, report: &mut ForgetReport) {
        for lost in &self.lost {
            let done = lost.erase(&self.what, &self.plan, report.dry_run);
            report.take(done, lost.path.clone());
        }
        for notes in self.memories.iter().map(MemoryTargets::notes) {
            if let Err(error) = notes.forget(&self.what, &self.plan, report) {
                report.warnings.push(format!("the notes were not searched: {error}"));
            }
        }
        for session in &self.plan.sessions {
            let done = self.in_session(session, now, report.dry_run);
            report.take(done, session.path.clone());
            if !session.is_ours && (session.holds || !session.entries.is_empty()) {
                let (path, why) = (session.path.clone(), THEIRS.to_owned());
                report.still_held.push(RemainingCopy { path, why });
            }
        }
    }

    fn check_found(&self, report: &ForgetReport) -> Result<()> {
        let named = self.what.session.as_deref();
        match named.filter(|_| !self.is_known && report.is_nothing()) {
            Some(named) => Err(check::unknown_session(named)),
            None => Ok(()),
        }
    }

    /// Erases from a transcript's side files and then from the transcript, as the transcript
    /// identifies what to erase.
    fn in_session(
        &self,
        session: &SessionTargets,
        now: Timestamp,
        dry_run: bool,
    ) -> Result<Vec<Erased>> {
        let needle = self.plan.needle.as_ref();
        let holds = |text: &str| needle.is_some_and(|needle| needle.is_in(text));
        let derived = |text: &str| session.only.are_in(text);
        let SessionTargets { path, entries, all, .. } = session;
        let erasing = EraseCriteria { entries, all: *all, derived: &derived, holds: &holds };
        if !session.is_ours {
            let erased = erase_in_overlay(&self.home, path, &erasing, now, dry_run)?;
            return Ok(erased.into_iter().collect());
        }
        let overlay = Overlay::of(&self.home, path)?;
        let mut erased = Vec::new();
        if overlay.path.exists() {
            erased.extend(erase_orphaned_overlay(&overlay.path, &erasing, dry_run)?);
        }
        erased.extend(erase_in_session(path, &erasing, dry_run)?.unwrap_or_default());
        Ok(erased)
    }

    /// Searches the home again for the text. Unreadable files are reported as possible matches.
    fn look_again(&self, report: &mut ForgetReport) {
        let needle = self.plan.needle.as_ref().filter(|_| self.what.session.is_none());
        let Some(needle) = needle.filter(|_| self.home.root.is_dir()) else { return };
        let SweepResult { holding, unread } = look(&self.home.root, needle);
        for path in holding {
            let why = match path.extension().and_then(|e| e.to_str()) {
                Some("journal") => "a running process has it open",
                _ => "not known to be derived from a message",
            };
            report.not_reached(RemainingCopy { path, why: why.to_owned() });
        }
        for path in unread {
            let why = "cannot be read, and may contain the text".to_owned();
            report.not_reached(RemainingCopy { path, why });
        }
    }
}

/// Whether a transcript or memory knows the named session, if one was named.
fn is_known(what: &ForgetRequest, plan: &Targets, memories: &[MemoryTargets<'_>]) -> Result<bool> {
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

impl ForgetReport {
    /// Adds the result of one transcript.
    fn take(&mut self, done: Result<Vec<Erased>>, path: PathBuf) {
        match done {
            Ok(erased) => self.files.extend(erased),
            Err(error) => self.not_reached(RemainingCopy { path, why: error.to_string() }),
        }
    }

    /// Records a file that ctx should have erased and could not, unless it is already listed. Files
    /// of other programs are listed before, as ctx does not write them.
    pub(super) fn not_reached(&mut self, held: RemainingCopy) {
        if self.still_held.iter().all(|known| known.path != held.path) {
            self.complete = false;
            self.still_held.push(held);
        }
    }
}

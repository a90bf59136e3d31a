//! Finds the messages to forget and their transcripts.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use ctx_core::text::head;
use ctx_core::{
    Chars, ContentHash, Counter, Entry, EntryId, Error, Projection, Result, Role, Timestamp,
};
use ctx_memory::archive::{SegmentMaker, text_of};
use ctx_search::SegmentId;
use ctx_session::{Home, all_projections};

use super::opened_session::OpenedSession;
use super::overlays::OrphanedOverlay;
use super::search_text::{OnlyInErased, SearchText};
use super::tool_results::{ResultFate, ResultReferences};
use super::transcripts::KnownTranscripts;
use super::{ForgetRequest, ForgottenMessage, RemainingCopy, check};

/// Maximum length of a message's preview.
const BEGINS: Chars = Chars(80);

/// A transcript with what to forget in it.
pub(super) struct SessionTargets {
    pub(super) path: PathBuf,
    pub(super) names: BTreeSet<String>,
    pub(super) is_ours: bool,
    pub(super) all: bool,
    pub(super) entries: HashSet<EntryId>,
    pub(super) only: OnlyInErased,
    pub(super) messages: Vec<ForgottenMessage>,
    /// Its name in memory.
    pub(super) in_memory: String,
    /// The erased entries, as stored.
    gone: HashMap<EntryId, Arc<Entry>>,
    /// Remaining entries with the same text as an erased entry.
    repeated: Vec<Arc<Entry>>,
    /// Whether the file itself contains the text searched for.
    pub(super) holds: bool,
}

/// What to forget.
#[derive(Default)]
pub(super) struct Targets {
    pub(super) needle: Option<SearchText>,
    pub(super) sessions: Vec<SessionTargets>,
    /// Entries that are in no transcript: the archive may have them.
    pub(super) unknown: Vec<String>,
    pub(super) traces: ResultReferences,
    pub(super) lost_overlays: Vec<OrphanedOverlay>,
    /// Whether a named session was found.
    pub(super) is_found: bool,
    /// Why the keys of some sessions are unknown.
    pub(super) damaged: Option<Error>,
    /// Transcripts from which nothing is erased.
    untouched: Vec<PathBuf>,
    /// Names in memory that several transcripts share.
    pub(super) shared: BTreeSet<String>,
    /// Files that cannot be read and may contain it.
    pub(super) unread: Vec<RemainingCopy>,
    pub(super) warnings: Vec<String>,
}

impl Targets {
    pub(super) fn of(home: &Home, what: &ForgetRequest, places: KnownTranscripts) -> Result<Self> {
        let KnownTranscripts { transcripts, lost_overlays, damaged, warnings } = places;
        let needle = what.matching.as_deref().map(SearchText::new);
        let mut plan = Self { needle, lost_overlays, damaged, warnings, ..Self::default() };
        let mut named: BTreeMap<&str, Vec<(PathBuf, ContentHash)>> = BTreeMap::new();
        let mut meant = BTreeSet::new();
        let mut in_memory: HashSet<String> = HashSet::new();
        for (path, names) in transcripts {
            let opened = match OpenedSession::of(home, &path, &names) {
                Ok(opened) => opened,
                Err(error) => {
                    plan.cannot_open(what, (path, &names), &error);
                    continue;
                }
            };
            if !in_memory.insert(opened.in_memory.clone()) {
                plan.shared.insert(opened.in_memory.clone());
            }
            if what.session.as_ref().is_some_and(|session| !opened.names.contains(session)) {
                plan.untouched.push(opened.path);
                continue;
            }
            meant.insert(opened.path.clone());
            let mut entries = opened.holding(plan.needle.as_ref())?;
            let holds = opened.file_holds(plan.needle.as_ref())?;
            for id in &what.entries {
                let Some(entry) = opened.find(id)? else { continue };
                named.entry(id).or_default().push((opened.path.clone(), entry.hash()?));
                entries.insert(entry.id().clone());
            }
            if entries.is_empty() && !what.is_whole() {
                plan.untouched.push(opened.path.clone());
            }
            plan.take(home, what, &opened, entries, holds)?;
        }
        check::session(what.session.as_deref(), &meant)?;
        plan.is_found |= !meant.is_empty();
        for id in &what.entries {
            match named.get(id.as_str()) {
                Some(found) => check::entry(id, found)?,
                None => plan.unknown.push(id.clone()),
            }
        }
        Ok(plan)
    }

    /// Records the files that projections of other sessions refer to, if any file may be erased.
    pub(super) fn trace_elsewhere(&mut self, home: &Home) {
        let Self { untouched, traces, .. } = self;
        if traces.is_empty() {
            return;
        }
        for path in untouched {
            // The references of an unreadable overlay are unknown, and protect no file.
            let forms = all_projections(home, path).unwrap_or_default();
            forms.iter().for_each(|form| traces.stays_elsewhere(form));
        }
    }

    /// Records a transcript that cannot be opened, unless it is empty. If a session is named, and
    /// the transcript is not known by that name, only a warning is recorded.
    fn cannot_open(
        &mut self,
        what: &ForgetRequest,
        (path, names): (PathBuf, &BTreeSet<String>),
        error: &Error,
    ) {
        if std::fs::metadata(&path).is_ok_and(|found| found.len() == 0) {
            return;
        }
        if what.session.as_ref().is_some_and(|session| !names.contains(session)) {
            self.warnings.push(format!("{} was not searched: {error}", path.display()));
            return;
        }
        // If the request names a session, this transcript belongs to it.
        self.is_found |= what.session.is_some();
        self.unread(path, error);
    }

    fn unread(&mut self, path: PathBuf, error: &Error) {
        self.unread.push(RemainingCopy { path, why: format!("it cannot be searched: {error}") });
    }

    /// Adds a transcript and what to erase in it, if anything.
    fn take(
        &mut self,
        home: &Home,
        what: &ForgetRequest,
        opened: &OpenedSession,
        entries: HashSet<EntryId>,
        holds: bool,
    ) -> Result<()> {
        let all = what.is_whole();
        if !all {
            opened.unread.iter().for_each(|(path, error)| self.unread(path.clone(), error));
        }
        // In a search for a text, summaries and projections may contain text that no message has.
        if entries.is_empty() && !all && self.needle.is_none() {
            return Ok(());
        }
        let mut session = SessionTargets {
            path: opened.path.clone(),
            names: opened.names.clone(),
            is_ours: opened.is_ours,
            all,
            entries,
            only: OnlyInErased::default(),
            messages: Vec::new(),
            in_memory: opened.in_memory.clone(),
            gone: HashMap::new(),
            repeated: Vec::new(),
            holds: holds || all,
        };
        if all || !session.entries.is_empty() {
            self.messages(home, opened, &mut session)?;
        }
        self.sessions.push(session);
        Ok(())
    }

    /// Records the texts of the erased messages and of the remaining ones.
    fn messages(
        &mut self,
        home: &Home,
        opened: &OpenedSession,
        session: &mut SessionTargets,
    ) -> Result<()> {
        let forms = all_projections(home, &opened.path)?;
        let mut of_entry: HashMap<&EntryId, Vec<&Projection>> = HashMap::new();
        for form in &forms {
            of_entry.entry(&form.key.entry).or_default().push(form);
        }
        let mut erased = HashSet::new();
        let mut traces = self.traces.in_session();
        for entry in opened.messages.values() {
            let (id, message) = (entry.id(), entry.message()?);
            let text = text_of(&message).unwrap_or_default();
            let forms = of_entry.get(id).map(Vec::as_slice).unwrap_or_default();
            if !session.all && !session.entries.contains(id) {
                traces.message(&message, forms, ResultFate::Stays);
                continue;
            }
            traces.message(&message, forms, ResultFate::Goes);
            session.messages.push(ForgottenMessage {
                entry: id.clone(),
                path: Some(opened.path.clone()),
                role: message.role.clone(),
                begins: Some(begins(&text)),
            });
            session.only.add_erased(&text);
            erased.insert((message.role.clone(), text));
            session.gone.insert(id.clone(), entry.clone());
        }
        if !session.all {
            let stays = |entry: &&Arc<Entry>| !session.entries.contains(entry.id());
            for entry in opened.messages.values().filter(stays) {
                let message = entry.message()?;
                let text = text_of(&message).unwrap_or_default();
                session.only.add_remaining(&text);
                if erased.contains(&(message.role.clone(), text)) {
                    session.repeated.push(entry.clone());
                }
            }
        }
        for id in session.entries.iter().filter(|id| !opened.messages.contains_key(*id)) {
            session.messages.push(ForgottenMessage {
                entry: id.clone(),
                path: Some(opened.path.clone()),
                role: Role::Custom,
                begins: None,
            });
        }
        Ok(())
    }
}

impl SessionTargets {
    /// Whether this message is erased from its files.
    pub(super) fn loses(&self, id: &EntryId) -> bool {
        self.gone.contains_key(id)
    }

    /// Returns the segments of the erased messages, both redacted and unredacted. They are needed
    /// if several sessions share one name in memory: entry ids then do not identify the session.
    pub(super) fn segments(&self) -> Result<HashSet<SegmentId>> {
        let segments = self.segments_of(self.gone.values())?;
        Ok(segments.into_iter().map(|(segment, _)| segment).collect())
    }

    /// Returns the segments that also belong to a remaining message, each with one such message.
    pub(super) fn repeated(&self) -> Result<HashMap<SegmentId, EntryId>> {
        Ok(self.segments_of(&self.repeated)?.into_iter().collect())
    }

    fn segments_of<'e>(
        &self,
        entries: impl IntoIterator<Item = &'e Arc<Entry>>,
    ) -> Result<Vec<(SegmentId, EntryId)>> {
        let maker = || SegmentMaker::new("", &*self.in_memory, Counter::default());
        let makers = [true, false].map(|redacts| maker().with_redaction(redacts));
        let mut segments = Vec::new();
        for entry in entries {
            for maker in &makers {
                let made = maker.of_entry(entry, Timestamp(0))?;
                segments.extend(made.map(|segment| (segment.id, entry.id().clone())));
            }
        }
        Ok(segments)
    }
}

/// Returns the beginning of a message, on one line.
pub(super) fn begins(text: &str) -> String {
    head(text.trim(), BEGINS).replace(['\n', '\r'], " ")
}

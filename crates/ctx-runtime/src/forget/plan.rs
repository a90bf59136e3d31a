//! Which messages are meant, in which transcripts.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use ctx_core::text::head;
use ctx_core::{
    Chars, ContentHash, Counter, Entry, EntryId, Error, Projection, Result, Role, Timestamp,
};
use ctx_memory::SegmentId;
use ctx_memory::archive::{SegmentMaker, text_of};
use ctx_session::erase::forms_kept;
use ctx_session::paths::Home;

use super::lost::LostOverlay;
use super::opened::Opened;
use super::places::{Place, Places};
use super::results::{Fate, Traces};
use super::words::{Needle, OnlyThere};
use super::{Forget, ForgottenMessage, StillHeld, check};

/// So much of a message is shown.
const BEGINS: Chars = Chars(80);

/// A transcript with what is to be forgotten of it.
pub(super) struct Session {
    pub(super) path: PathBuf,
    pub(super) names: BTreeSet<String>,
    pub(super) is_ours: bool,
    pub(super) all: bool,
    pub(super) entries: HashSet<EntryId>,
    pub(super) only: OnlyThere,
    pub(super) messages: Vec<ForgottenMessage>,
    /// The name under which it stands in memory.
    pub(super) in_memory: String,
    /// What goes, as it is written.
    gone: HashMap<EntryId, Arc<Entry>>,
    /// What stays and says the same as something that goes.
    said_again: Vec<Arc<Entry>>,
    /// Whether the file itself holds what is looked for.
    pub(super) holds: bool,
}

/// What is to be forgotten.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) needle: Option<Needle>,
    pub(super) sessions: Vec<Session>,
    /// Entries that no transcript has: the archive may have them.
    pub(super) unknown: Vec<String>,
    pub(super) traces: Traces,
    pub(super) lost_overlays: Vec<LostOverlay>,
    /// Whether a session was named and found.
    pub(super) is_found: bool,
    /// Why keys of sessions may not be known.
    pub(super) damaged: Option<Error>,
    /// Transcripts of which nothing goes.
    untouched: Vec<PathBuf>,
    /// The names in memory that several transcripts have.
    pub(super) shared: BTreeSet<String>,
    /// What cannot be looked into, and may hold it.
    pub(super) unread: Vec<StillHeld>,
    pub(super) warnings: Vec<String>,
}

impl Plan {
    pub(super) fn of(home: &Home, what: &Forget, places: Places) -> Result<Self> {
        let Places { transcripts, lost_overlays, damaged, warnings } = places;
        let needle = what.matching.as_deref().map(Needle::new);
        let mut plan = Self { needle, lost_overlays, damaged, warnings, ..Self::default() };
        let mut named: BTreeMap<&str, Vec<(PathBuf, ContentHash)>> = BTreeMap::new();
        let mut meant = BTreeSet::new();
        let mut in_memory: HashSet<String> = HashSet::new();
        for place in transcripts {
            let opened = match Opened::of(home, &place) {
                Ok(opened) => opened,
                Err(error) => {
                    plan.cannot_open(what, place, &error);
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

    /// Learns of the files that the forms in other sessions speak of, where any file may go.
    pub(super) fn trace_elsewhere(&mut self, home: &Home) {
        let Self { untouched, traces, .. } = self;
        if traces.is_empty() {
            return;
        }
        for path in untouched {
            // What cannot be read keeps nothing.
            let forms = forms_kept(home, path).unwrap_or_default();
            forms.iter().for_each(|form| traces.stays_elsewhere(form));
        }
    }

    /// Takes note of a transcript that cannot be looked into. Where another session is meant, it only
    /// may be that one.
    fn cannot_open(&mut self, what: &Forget, place: Place, error: &Error) {
        let Place { path, names } = place;
        if std::fs::metadata(&path).is_ok_and(|found| found.len() == 0) {
            return;
        }
        if what.session.as_ref().is_some_and(|session| !names.contains(session)) {
            self.warnings.push(format!("{} is not looked into: {error}", path.display()));
            return;
        }
        // It may be the one that is meant.
        self.is_found |= what.session.is_some();
        self.unread(path, error);
    }

    fn unread(&mut self, path: PathBuf, error: &Error) {
        self.unread.push(StillHeld { path, why: format!("it cannot be looked into: {error}") });
    }

    /// Takes a transcript in, with what of it is to be forgotten, if there may be anything.
    fn take(
        &mut self,
        home: &Home,
        what: &Forget,
        opened: &Opened,
        entries: HashSet<EntryId>,
        holds: bool,
    ) -> Result<()> {
        let all = what.is_whole();
        if !all {
            opened.unread.iter().for_each(|(path, error)| self.unread(path.clone(), error));
        }
        // Where a text is looked for, summaries and forms may hold it that no message holds any more.
        if entries.is_empty() && !all && self.needle.is_none() {
            return Ok(());
        }
        let mut session = Session {
            path: opened.path.clone(),
            names: opened.names.clone(),
            is_ours: opened.is_ours,
            all,
            entries,
            only: OnlyThere::default(),
            messages: Vec::new(),
            in_memory: opened.in_memory.clone(),
            gone: HashMap::new(),
            said_again: Vec::new(),
            holds: holds || all,
        };
        if all || !session.entries.is_empty() {
            self.messages(home, opened, &mut session)?;
        }
        self.sessions.push(session);
        Ok(())
    }

    /// Learns what the messages say that go, and what those say that stay.
    fn messages(&mut self, home: &Home, opened: &Opened, session: &mut Session) -> Result<()> {
        let forms = forms_kept(home, &opened.path)?;
        let mut of_entry: HashMap<&EntryId, Vec<&Projection>> = HashMap::new();
        for form in &forms {
            of_entry.entry(&form.key.entry).or_default().push(form);
        }
        let mut said = HashSet::new();
        let mut traces = self.traces.in_session();
        for entry in opened.messages.values() {
            let (id, message) = (entry.id(), entry.message()?);
            let text = text_of(&message).unwrap_or_default();
            let forms = of_entry.get(id).map(Vec::as_slice).unwrap_or_default();
            if !session.all && !session.entries.contains(id) {
                traces.message(&message, forms, Fate::Stays);
                continue;
            }
            traces.message(&message, forms, Fate::Goes);
            session.messages.push(ForgottenMessage {
                entry: id.clone(),
                path: Some(opened.path.clone()),
                role: message.role.clone(),
                begins: Some(begins(&text)),
            });
            session.only.goes(&text);
            said.insert((message.role.clone(), text));
            session.gone.insert(id.clone(), entry.clone());
        }
        if !session.all {
            let stays = |entry: &&Arc<Entry>| !session.entries.contains(entry.id());
            for entry in opened.messages.values().filter(stays) {
                let message = entry.message()?;
                let text = text_of(&message).unwrap_or_default();
                session.only.stays(&text);
                if said.contains(&(message.role.clone(), text)) {
                    session.said_again.push(entry.clone());
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

impl Session {
    /// Whether no message of it goes.
    pub(super) fn is_spared(&self) -> bool {
        self.messages.is_empty()
    }

    /// Whether a message of it goes that its files have.
    pub(super) fn loses(&self, id: &EntryId) -> bool {
        self.gone.contains_key(id)
    }

    /// The segments that were made of what goes, with secrets taken out and without. Where several
    /// sessions have one name in memory, ids of entries do not tell which of them said a thing.
    pub(super) fn segments(&self) -> Result<HashSet<SegmentId>> {
        let segments = self.segments_of(self.gone.values())?;
        Ok(segments.into_iter().map(|(segment, _)| segment).collect())
    }

    /// The segments that are of a message that stays as well, each with one such.
    pub(super) fn said_again(&self) -> Result<HashMap<SegmentId, EntryId>> {
        Ok(self.segments_of(&self.said_again)?.into_iter().collect())
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

/// How a message begins, on one line.
pub(super) fn begins(text: &str) -> String {
    head(text.trim(), BEGINS).replace(['\n', '\r'], " ")
}

//! Which messages are meant, in which transcripts.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use ctx_core::text::head;
use ctx_core::{Chars, ContentHash, Entry, EntryId, Error, ErrorKind, Result, Role};
use ctx_memory::archive::text_of;
use ctx_session::Transcript;
use ctx_session::erase::{files_of, forms_kept};
use ctx_session::paths::Home;

use super::places::{Place, Places};
use super::results::Traces;
use super::words::{Needle, OnlyThere};
use super::{Forget, ForgottenMessage};

/// So much of a message is shown.
const BEGINS: Chars = Chars(80);

/// So many sessions are named that have an entry of the same id.
const NAMED: usize = 4;

/// A transcript with what is to be forgotten of it.
pub(super) struct Session {
    pub(super) path: PathBuf,
    pub(super) names: BTreeSet<String>,
    pub(super) is_ours: bool,
    pub(super) all: bool,
    pub(super) entries: HashSet<EntryId>,
    pub(super) only: OnlyThere,
    pub(super) messages: Vec<ForgottenMessage>,
    /// Whether the file itself holds what is looked for.
    pub(super) holds: bool,
}

/// What is to be forgotten.
pub(super) struct Plan {
    pub(super) needle: Option<Needle>,
    pub(super) sessions: Vec<Session>,
    /// Entries that no transcript has: the archive may have them.
    pub(super) unknown: Vec<String>,
    pub(super) traces: Traces,
}

impl Plan {
    pub(super) fn of(
        home: &Home,
        what: &Forget,
        places: Places,
    ) -> Result<(Self, Vec<PathBuf>, Vec<String>)> {
        let Places { transcripts, lost_overlays, mut warnings } = places;
        let needle = what.matching.as_deref().map(Needle::new);
        let mut plan =
            Self { needle, sessions: Vec::new(), unknown: Vec::new(), traces: Traces::default() };
        let mut named: BTreeMap<&str, Vec<(PathBuf, ContentHash)>> = BTreeMap::new();
        for place in transcripts {
            let opened = match Opened::of(home, &place) {
                Ok(opened) => opened,
                Err(error) => {
                    let path = place.path.display();
                    warnings.push(format!("{path} is not looked into: {error}"));
                    continue;
                }
            };
            if what.session.as_ref().is_some_and(|session| !opened.names.contains(session)) {
                continue;
            }
            let mut entries = opened.holding(plan.needle.as_ref())?;
            let holds = opened.file_holds(plan.needle.as_ref())?;
            for id in &what.entries {
                let Some(entry) = opened.find(id)? else { continue };
                named.entry(id).or_default().push((opened.path.clone(), entry.hash()?));
                entries.insert(entry.id().clone());
            }
            plan.take(home, what, &opened, entries, holds)?;
        }
        for id in &what.entries {
            match named.get(id.as_str()) {
                Some(found) => is_one(id, found)?,
                None => plan.unknown.push(id.clone()),
            }
        }
        Ok((plan, lost_overlays, warnings))
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
            holds: holds || all,
        };
        let goes = |id: &EntryId| all || session.entries.contains(id);
        for entry in opened.messages.values().filter(|entry| goes(entry.id())) {
            let message = entry.message()?;
            let text = text_of(&message).unwrap_or_default();
            session.messages.push(ForgottenMessage {
                entry: entry.id().clone(),
                path: Some(opened.path.clone()),
                role: message.role.clone(),
                begins: Some(head(text.trim(), BEGINS).replace(['\n', '\r'], " ")),
            });
            session.only.goes(&text);
            self.traces.of_message(&message);
        }
        for id in session.entries.iter().filter(|id| !opened.messages.contains_key(id)) {
            let (entry, path) = (id.clone(), Some(opened.path.clone()));
            session.messages.push(ForgottenMessage {
                entry,
                path,
                role: Role::Custom,
                begins: None,
            });
        }
        if !session.entries.is_empty() && !all {
            for entry in opened.messages.values().filter(|entry| !goes(entry.id())) {
                session.only.stays(&text_of(&*entry.message()?).unwrap_or_default());
            }
        }
        if !session.messages.is_empty() {
            for form in forms_kept(home, &opened.path)?.iter().filter(|form| goes(&form.key.entry))
            {
                self.traces.of_form(form);
            }
        }
        self.sessions.push(session);
        Ok(())
    }
}

/// A session with those that were archived beside it, opened.
struct Opened {
    path: PathBuf,
    names: BTreeSet<String>,
    is_ours: bool,
    transcripts: Vec<Transcript>,
    /// All messages of all of them, in their order in the file they were found in first.
    messages: indexed::Messages,
}

impl Opened {
    fn of(home: &Home, place: &Place) -> Result<Self> {
        let Place { path, mut names } = place.clone();
        let open = |path: &PathBuf| ctx_session::open(home, path);
        let first = open(&path)?;
        names.extend(first.header().id.clone());
        let is_ours = first.is_ours();
        let mut transcripts = vec![first];
        if is_ours {
            transcripts.extend(files_of(&path).iter().skip(1).filter_map(|file| open(file).ok()));
        }
        let mut messages = indexed::Messages::default();
        for transcript in &transcripts {
            transcript.all_messages().into_iter().for_each(|entry| messages.add(entry));
        }
        Ok(Self { path, names, is_ours, transcripts, messages })
    }

    /// The messages that hold a text.
    fn holding(&self, needle: Option<&Needle>) -> Result<HashSet<EntryId>> {
        let Some(needle) = needle else { return Ok(HashSet::new()) };
        let mut found = HashSet::new();
        for transcript in &self.transcripts {
            found.extend(transcript.messages_holding(&|text| needle.is_in(text))?);
        }
        Ok(found)
    }

    /// Whether the file of another program holds a text, whatever ctx was told to forget of it.
    fn file_holds(&self, needle: Option<&Needle>) -> Result<bool> {
        let Some(needle) = needle.filter(|_| !self.is_ours) else { return Ok(false) };
        let alone = Transcript::open(&self.path)?;
        Ok(!alone.messages_holding(&|text| needle.is_in(text))?.is_empty())
    }

    /// The message of an entry that somebody named, by its id or the beginning of it.
    fn find(&self, id: &str) -> Result<Option<Arc<Entry>>> {
        for transcript in &self.transcripts {
            let Some(found) = transcript.find(id) else { continue };
            if let Some(entry) = self.messages.get(&found) {
                return Ok(Some(entry.clone()));
            }
            // A message that was written over several lines is named by any of them.
            let line = transcript.line_to(Some(&found))?;
            if let Some(item) =
                line.last().filter(|item| self.messages.contains_key(item.entry.id()))
            {
                let is_message =
                    transcript.index_of(&found).and_then(|at| transcript.entries().get(at));
                if is_message.is_some_and(ctx_session::TreeEntry::is_message) {
                    return Ok(Some(item.entry.clone()));
                }
            }
        }
        Ok(None)
    }
}

/// Messages by their ids, in the order in which they came.
mod indexed {
    use super::{Arc, Entry, EntryId, HashMap};

    #[derive(Default)]
    pub(super) struct Messages {
        places: HashMap<EntryId, usize>,
        entries: Vec<Arc<Entry>>,
    }

    impl Messages {
        pub(super) fn add(&mut self, entry: Arc<Entry>) {
            let next = self.entries.len();
            if *self.places.entry(entry.id().clone()).or_insert(next) == next {
                self.entries.push(entry);
            }
        }

        pub(super) fn get(&self, id: &EntryId) -> Option<&Arc<Entry>> {
            self.entries.get(*self.places.get(id)?)
        }

        pub(super) fn contains_key(&self, id: &EntryId) -> bool {
            self.places.contains_key(id)
        }

        pub(super) fn values(&self) -> impl Iterator<Item = &Arc<Entry>> {
            self.entries.iter()
        }
    }
}

/// Refuses an id that means one thing here and another there. Copies of a session have the same
/// entries under the same ids: those are one.
fn is_one(id: &str, found: &[(PathBuf, ContentHash)]) -> Result<()> {
    if found.iter().all(|(_, hash)| Some(hash) == found.first().map(|(_, hash)| hash)) {
        return Ok(());
    }
    let paths = found.iter().take(NAMED).map(|(path, _)| path.display().to_string());
    let paths = paths.collect::<Vec<_>>().join(", ");
    Err(Error::new(ErrorKind::InvalidInput, "several sessions have an entry of that id")
        .with("entry", id)
        .with("sessions", paths)
        .hint("say which one with --session, by its key, its id or its path"))
}

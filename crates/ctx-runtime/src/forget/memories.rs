//! What goes from the memory of an agent.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ctx_core::{EntryId, Result};
use ctx_memory::facts::{Erase, FactStore};
use ctx_memory::{Memory, Segment, SegmentId};
use ctx_session::blobs::FileBlobs;
use ctx_session::key::FileId;
use ctx_session::paths::Home;

use super::plan::{Plan, begins};
use super::results::{Fate, Traces, names_in};
use super::{Forget, ForgottenMessage, InAgent, Notes, StillHeld, values};
use crate::memory::FACTS;

const SAID_AGAIN: &str =
    "another message of it says the same and stays, and so does its segment in the archive";

/// The memory of an agent, opened.
#[derive(Clone)]
pub struct Remembered {
    /// Whose it is.
    pub agent: FileId,
    /// Its archive and what is derived from it.
    pub memory: Memory,
    /// Its facts, if they can be read.
    pub facts: Option<Arc<Mutex<FactStore>>>,
}

/// What is to go from one memory.
pub(super) struct InMemory<'r> {
    of: &'r Remembered,
    folder: PathBuf,
    segments: Vec<Segment>,
    /// Whole sessions.
    sessions: BTreeSet<String>,
    /// Entries of sessions, and segments that are of no entry.
    entries: BTreeMap<String, BTreeSet<String>>,
    matching: Option<String>,
    results: Vec<String>,
    blobs: FileBlobs,
    values: Vec<PathBuf>,
    /// The segments that were made of messages of transcripts that go.
    made_of: HashSet<SegmentId>,
    /// Transcripts that say the same elsewhere, for which a segment stays.
    said_again: Vec<StillHeld>,
    /// What cannot be read, and so cannot be forgotten.
    unread: Vec<StillHeld>,
}

impl<'r> InMemory<'r> {
    pub(super) fn of(home: &Home, what: &Forget, plan: &Plan, of: &'r Remembered) -> Result<Self> {
        let mut sessions: BTreeSet<String> = BTreeSet::new();
        let mut entries: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut made_of: HashSet<SegmentId> = HashSet::new();
        let mut again: HashMap<SegmentId, StillHeld> = HashMap::new();
        for session in &plan.sessions {
            // An archive has one segment for all that say the same, under the entry of the first.
            if !session.all || plan.shared.contains(&session.in_memory) {
                made_of.extend(session.segments()?);
            }
            for (segment, entry) in session.said_again()? {
                let why = format!("{SAID_AGAIN} (message {entry})");
                again.insert(segment, StillHeld { path: session.path.clone(), why });
            }
            for name in session.names.iter().filter(|name| !plan.shared.contains(*name)) {
                if session.all {
                    sessions.insert(name.clone());
                } else if !session.entries.is_empty() {
                    let ids = session.entries.iter().map(ToString::to_string);
                    entries.entry(name.clone()).or_default().extend(ids);
                }
            }
        }
        if what.is_whole() {
            let is_one = |name: &String| !plan.shared.contains(name);
            sessions.extend(what.session.clone().filter(is_one));
        }
        // A session that is named bounds what a text is looked for in.
        let scope = what.session.as_ref().map(|session| {
            let names = plan.sessions.iter().flat_map(|session| session.names.iter().cloned());
            names.chain([session.clone()]).collect::<BTreeSet<String>>()
        });
        let is_unknown = |segment: &Segment| {
            let id = segment.entry_id.as_deref();
            id.is_some_and(|id| plan.unknown.iter().any(|unknown| id.starts_with(unknown.as_str())))
        };
        let mut said_again = Vec::new();
        let wanted = |segment: &Segment| {
            let session = segment.session_id.as_str();
            let in_scope = || scope.as_ref().is_none_or(|scope| scope.contains(session));
            let holds = || plan.needle.as_ref().is_some_and(|n| n.is_in(&segment.content));
            let is_named = || {
                let id = segment.entry_id.as_ref();
                id.is_some_and(|id| entries.get(session).is_some_and(|ids| ids.contains(id)))
            };
            if sessions.contains(session) || in_scope() && (holds() || is_unknown(segment)) {
                return true;
            }
            let goes = made_of.contains(&segment.id) || is_named();
            let stays = again.get(&segment.id).filter(|_| goes);
            said_again.extend(stays.cloned());
            goes && stays.is_none()
        };
        let mut segments = of.memory.select(wanted)?;
        // A whole id is meant before the beginning of others.
        let is_whole = |segment: &Segment, id: &String| segment.entry_id.as_ref() == Some(id);
        for id in &plan.unknown {
            if segments.iter().any(|segment| is_whole(segment, id)) {
                segments.retain(|segment| {
                    let begins =
                        segment.entry_id.as_ref().is_some_and(|of| of.starts_with(id.as_str()));
                    !begins || is_whole(segment, id)
                });
            }
        }
        for segment in &segments {
            let id = segment.entry_id.clone().unwrap_or_else(|| segment.id.to_string());
            entries.entry(segment.session_id.clone()).or_default().insert(id);
        }
        // Facts are looked through by themselves for a text, where it goes wherever it was said.
        let matching = what.matching.clone().filter(|_| scope.is_none());
        let blobs = FileBlobs::at(home.tool_results_dir(&of.agent));
        let folder = home.memory_dir(&of.agent);
        let mut unread = Vec::new();
        if of.facts.is_none() {
            let why = "the facts cannot be read: whether one of them tells it is not known";
            unread.push(StillHeld { path: folder.join(FACTS), why: why.to_owned() });
        }
        let (results, values) = (Vec::new(), Vec::new());
        Ok(Self {
            of,
            folder,
            segments,
            sessions,
            entries,
            matching,
            results,
            blobs,
            values,
            made_of,
            said_again,
            unread,
        })
    }

    /// What goes that no transcript has any more.
    pub(super) fn only_archived(&self, plan: &Plan) -> impl Iterator<Item = &Segment> {
        let is_known = |segment: &Segment| {
            if self.made_of.contains(&segment.id) {
                return true;
            }
            let Some(id) = segment.entry_id.as_deref().map(EntryId::from) else { return false };
            let mut sessions = plan.sessions.iter();
            sessions.any(|of| of.names.contains(&segment.session_id) && of.loses(&id))
        };
        self.segments.iter().filter(move |segment| !is_known(segment))
    }

    /// Learns of the files that those tell of. Of the messages of the archive, too, it is the first to
    /// name a file that it is of, and that one may stay.
    pub(super) fn trace(&self, plan: &Plan, traces: &mut Traces) -> Result<()> {
        let gone: Vec<&Segment> = self.only_archived(plan).collect();
        let names: HashSet<String> = gone.iter().flat_map(|of| names_in(&of.content)).collect();
        let sessions: HashSet<&str> = gone.iter().map(|of| of.session_id.as_str()).collect();
        let ids: HashSet<SegmentId> = self.segments.iter().map(|segment| segment.id).collect();
        let speaks = |segment: &Segment| {
            sessions.contains(segment.session_id.as_str())
                && !ids.contains(&segment.id)
                && names_in(&segment.content).any(|name| names.contains(&name))
        };
        let kept = if names.is_empty() { Vec::new() } else { self.of.memory.select(speaks)? };
        let mut told: Vec<(&Segment, Fate)> = gone.iter().map(|of| (*of, Fate::Goes)).collect();
        told.extend(kept.iter().map(|of| (of, Fate::Stays)));
        told.sort_by(|(a, _), (b, _)| {
            (&a.session_id, a.timestamp).cmp(&(&b.session_id, b.timestamp))
        });
        for of_session in told.chunk_by(|(a, _), (b, _)| a.session_id == b.session_id) {
            let mut traces = traces.in_session();
            of_session.iter().for_each(|(segment, fate)| traces.archived(segment, *fate));
        }
        Ok(())
    }

    /// The notes that were written for its agent.
    pub(super) fn notes(&self) -> Notes {
        Notes::of(&self.folder)
    }

    /// Whether anything in this memory is of a session.
    pub(super) fn knows(&self, session: &str) -> Result<bool> {
        let of_session =
            |store: MutexGuard<'_, FactStore>| store.facts().any(|fact| fact.session_id == session);
        if self.facts().is_some_and(of_session) {
            return Ok(true);
        }
        Ok(!self.of.memory.of_session(session)?.is_empty())
    }

    /// The messages of entries that only the archive has, with their sessions.
    pub(super) fn named(&self, unknown: &[String]) -> Vec<(String, ForgottenMessage)> {
        let of_entry = |segment: &&Segment| {
            let id = segment.entry_id.as_ref();
            id.is_some_and(|id| unknown.iter().any(|unknown| id.starts_with(unknown.as_str())))
        };
        let found = self.segments.iter().filter(of_entry);
        found.map(|segment| (segment.session_id.clone(), message(segment))).collect()
    }

    /// The messages that only the archive has, as they stand there.
    pub(super) fn messages(
        &self,
        plan: &Plan,
    ) -> impl Iterator<Item = (SegmentId, ForgottenMessage)> {
        self.only_archived(plan).map(|segment| (segment.id, message(segment)))
    }

    /// Transcripts that say the same elsewhere, for which a segment stays.
    pub(super) fn said_again(&self) -> &[StillHeld] {
        &self.said_again
    }

    /// Finds the files of tool results and of engines that go, once all is known of the messages that
    /// do.
    pub(super) fn find_derived(&mut self, home: &Home, what: &Forget, plan: &Plan) -> Result<()> {
        let whole = what.session.as_deref().filter(|_| what.is_whole());
        let sessions = self.only_archived(plan).map(|segment| segment.session_id.as_str());
        let sessions: BTreeSet<&str> = sessions.chain(whole).collect();
        let (values, unread) = values::to_go(home, what, &self.of.agent, plan, &sessions)?;
        self.values = values;
        self.unread.extend(unread);
        let needle = plan.needle.as_ref().filter(|_| what.session.is_none());
        self.results = plan.traces.in_blobs(&self.blobs, needle)?;
        Ok(())
    }

    /// What would go.
    pub(super) fn count(&self) -> InAgent {
        InAgent {
            agent: self.of.agent.to_string(),
            segments: self.segments.len(),
            vectors: 0,
            facts: self.facts().map_or(0, |store| store.would_forget(&self.erases()).len()),
            tool_results: self.results.len(),
            engine_values: self.values.len(),
        }
    }

    /// What cannot be read, and so cannot be forgotten.
    pub(super) fn unread(&self) -> &[StillHeld] {
        &self.unread
    }

    /// Lets it go: what was drawn from the archive first, the archive itself last. Even where nothing
    /// of it is there, what a run that was killed left behind is taken away.
    pub(super) fn forget(&self) -> Result<InAgent> {
        let mut gone = InAgent { agent: self.of.agent.to_string(), ..InAgent::default() };
        if let Some(mut store) = self.facts() {
            gone.facts = store.forget(&self.erases())?.len();
        }
        for name in &self.results {
            gone.tool_results += usize::from(self.blobs.remove(name)?);
        }
        gone.engine_values = values::remove(&self.values)?;
        // A memory that was never used is not made by forgetting.
        if !self.folder.is_dir() {
            return Ok(gone);
        }
        let vectors = self.of.memory.stats()?.vectors;
        let ids: HashSet<SegmentId> = self.segments.iter().map(|segment| segment.id).collect();
        gone.segments = self.of.memory.forget(&ids)? + self.forget_since()?;
        gone.vectors = vectors.saturating_sub(self.of.memory.stats()?.vectors);
        Ok(gone)
    }

    /// A session goes as a whole, and so does what was archived of it since it was found.
    fn forget_since(&self) -> Result<usize> {
        if self.sessions.is_empty() {
            return Ok(0);
        }
        let since = self.of.memory.select(|segment| self.sessions.contains(&segment.session_id))?;
        if since.is_empty() {
            return Ok(0);
        }
        self.of.memory.forget(&since.iter().map(|segment| segment.id).collect())
    }

    fn facts(&self) -> Option<MutexGuard<'_, FactStore>> {
        let facts = self.of.facts.as_ref()?;
        Some(facts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn erases(&self) -> Vec<Erase<'_>> {
        let sessions = self.sessions.iter().map(|session| Erase::Session(session));
        let entries = self.entries.iter().map(|(session, ids)| Erase::Entries { session, ids });
        sessions.chain(entries).chain(self.matching.as_deref().map(Erase::Matching)).collect()
    }
}

fn message(segment: &Segment) -> ForgottenMessage {
    let id = segment.entry_id.clone().unwrap_or_else(|| segment.id.to_string());
    ForgottenMessage {
        entry: EntryId::from(id.as_str()),
        path: None,
        role: segment.role.clone(),
        begins: Some(begins(&segment.content)),
    }
}

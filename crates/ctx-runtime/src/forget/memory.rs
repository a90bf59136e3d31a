//! Selects and erases messages in the memory of an agent.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use ctx_core::{EntryId, Result};
use ctx_memory::Memory;
use ctx_memory::facts::{FactSelector, FactStore};
use ctx_search::{Segment, SegmentId};
use ctx_session::key::FileId;
use ctx_session::{FileBlobs, Home, blob_names_in};

use super::targets::{Targets, begins};
use super::tool_results::{ResultFate, ResultReferences};
use super::{ForgetRequest, ForgottenInAgent, ForgottenMessage, NoteIndex, RemainingCopy, values};
use crate::memory::FACTS_FILE;
use crate::sync::locked;

const REPEATED: &str = "a remaining message has the same text, so its segment stays in the archive";

/// The opened memory of an agent.
#[derive(Clone)]
pub struct MemoryToErase {
    /// The agent.
    pub agent: FileId,
    /// Its archive and the data derived from it.
    pub memory: Memory,
    /// Its facts, if they can be read.
    pub facts: Option<Arc<Mutex<FactStore>>>,
}

/// What to erase from one memory.
pub(super) struct MemoryTargets<'r> {
    of: &'r MemoryToErase,
    folder: PathBuf,
    segments: Vec<Segment>,
    /// Whole sessions.
    sessions: BTreeSet<String>,
    /// Entries of sessions, and segments that belong to no entry.
    entries: BTreeMap<String, BTreeSet<String>>,
    matching: Option<String>,
    results: Vec<String>,
    blobs: FileBlobs,
    values: Vec<PathBuf>,
    /// The segments of the erased messages of transcripts.
    of_erased: HashSet<SegmentId>,
    /// Transcripts with the same text in a remaining message, which keeps the segment.
    pub(super) repeated: Vec<RemainingCopy>,
    /// Files that cannot be read, and so cannot be erased.
    pub(super) unread: Vec<RemainingCopy>,
}

impl<'r> MemoryTargets<'r> {
    pub(super) fn of(
        home: &Home,
        what: &ForgetRequest,
        plan: &Targets,
        of: &'r MemoryToErase,
    ) -> Result<Self> {
        let (mut sessions, mut entries) = (BTreeSet::new(), BTreeMap::<_, BTreeSet<_>>::new());
        let (mut of_erased, mut kept) = (HashSet::new(), HashMap::new());
        for session in &plan.sessions {
            // The archive has one segment for equal texts, under the entry of the first.
            if !session.all || plan.shared.contains(&session.in_memory) {
                of_erased.extend(session.segments()?);
            }
            for (segment, entry) in session.repeated()? {
                let why = format!("{REPEATED} (message {entry})");
                kept.insert(segment, RemainingCopy { path: session.path.clone(), why });
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
        // A named session limits the search for a text.
        let scope = what.session.as_ref().map(|session| {
            let names = plan.sessions.iter().flat_map(|session| session.names.iter().cloned());
            names.chain([session.clone()]).collect::<BTreeSet<String>>()
        });
        let is_unknown = |segment: &Segment| {
            let id = segment.entry_id.as_deref();
            id.is_some_and(|id| plan.unknown.iter().any(|unknown| id.starts_with(unknown.as_str())))
        };
        let mut repeated = Vec::new();
        let is_selected = |segment: &Segment| {
            let session = segment.session_id.as_str();
            let in_scope = || scope.as_ref().is_none_or(|scope| scope.contains(session));
            let matches = || plan.needle.as_ref().is_some_and(|n| n.is_in(&segment.content));
            let is_named = || {
                let id = segment.entry_id.as_ref();
                id.is_some_and(|id| entries.get(session).is_some_and(|ids| ids.contains(id)))
            };
            if sessions.contains(session) || in_scope() && (matches() || is_unknown(segment)) {
                return true;
            }
            let goes = of_erased.contains(&segment.id) || is_named();
            let stays = kept.get(&segment.id).filter(|_| goes);
            repeated.extend(stays.cloned());
            goes && stays.is_none()
        };
        let mut segments = of.memory.select(is_selected)?;
        prefer_exact_ids(&mut segments, &plan.unknown);
        for segment in &segments {
            let id = segment.entry_id.clone().unwrap_or_else(|| segment.id.to_string());
            entries.entry(segment.session_id.clone()).or_default().insert(id);
        }
        // Facts are searched separately when the text is erased everywhere.
        let matching = what.matching.clone().filter(|_| scope.is_none());
        let blobs = FileBlobs::at(home.tool_results_dir(&of.agent));
        let folder = home.memory_dir(&of.agent);
        let mut unread = Vec::new();
        if of.facts.is_none() {
            let why = "the facts cannot be read, and may contain it";
            unread.push(RemainingCopy { path: folder.join(FACTS_FILE), why: why.to_owned() });
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
            of_erased,
            repeated,
            unread,
        })
    }

    /// Returns the erased segments that are in no transcript any more.
    pub(super) fn only_archived(&self, plan: &Targets) -> impl Iterator<Item = &Segment> {
        let is_known = |segment: &Segment| {
            if self.of_erased.contains(&segment.id) {
                return true;
            }
            let Some(id) = segment.entry_id.as_deref().map(EntryId::from) else { return false };
            let mut sessions = plan.sessions.iter();
            sessions.any(|of| of.names.contains(&segment.session_id) && of.loses(&id))
        };
        self.segments.iter().filter(move |segment| !is_known(segment))
    }

    /// Records the files that its segments refer to. As in transcripts, a file belongs to the first
    /// message that names it, and that message may remain.
    pub(super) fn trace(&self, plan: &Targets, traces: &mut ResultReferences) -> Result<()> {
        let gone: Vec<&Segment> = self.only_archived(plan).collect();
        let names: HashSet<String> =
            gone.iter().flat_map(|of| blob_names_in(&of.content)).collect();
        let sessions: HashSet<&str> = gone.iter().map(|of| of.session_id.as_str()).collect();
        let ids: HashSet<SegmentId> = self.segments.iter().map(|segment| segment.id).collect();
        let names_same_file = |segment: &Segment| {
            sessions.contains(segment.session_id.as_str())
                && !ids.contains(&segment.id)
                && blob_names_in(&segment.content).any(|name| names.contains(&name))
        };
        let kept =
            if names.is_empty() { Vec::new() } else { self.of.memory.select(names_same_file)? };
        let mut messages: Vec<(&Segment, ResultFate)> =
            gone.iter().map(|of| (*of, ResultFate::Goes)).collect();
        messages.extend(kept.iter().map(|of| (of, ResultFate::Stays)));
        messages.sort_by(|(a, _), (b, _)| {
            (&a.session_id, a.timestamp).cmp(&(&b.session_id, b.timestamp))
        });
        for of_session in messages.chunk_by(|(a, _), (b, _)| a.session_id == b.session_id) {
            let mut traces = traces.in_session();
            of_session.iter().for_each(|(segment, fate)| traces.archived(segment, *fate));
        }
        Ok(())
    }

    /// Returns the notes written for its agent.
    pub(super) fn notes(&self) -> NoteIndex {
        NoteIndex::of(&self.folder)
    }

    /// Whether this memory contains anything of a session.
    pub(super) fn knows(&self, session: &str) -> Result<bool> {
        let of_session =
            |store: MutexGuard<'_, FactStore>| store.facts().any(|fact| fact.session_id == session);
        if self.facts().is_some_and(of_session) {
            return Ok(true);
        }
        Ok(!self.of.memory.of_session(session)?.is_empty())
    }

    /// Returns the messages of entries that only the archive has, with their sessions.
    pub(super) fn named(&self, unknown: &[String]) -> Vec<(String, ForgottenMessage)> {
        let of_entry = |segment: &&Segment| {
            let id = segment.entry_id.as_ref();
            id.is_some_and(|id| unknown.iter().any(|unknown| id.starts_with(unknown.as_str())))
        };
        let found = self.segments.iter().filter(of_entry);
        found.map(|segment| (segment.session_id.clone(), message(segment))).collect()
    }

    /// Returns the messages that only the archive has, as archived.
    pub(super) fn messages(
        &self,
        plan: &Targets,
    ) -> impl Iterator<Item = (SegmentId, ForgottenMessage)> {
        self.only_archived(plan).map(|segment| (segment.id, message(segment)))
    }

    /// Finds the files of tool results and of engines to erase, once all erased messages are known.
    pub(super) fn find_derived(
        &mut self,
        home: &Home,
        what: &ForgetRequest,
        plan: &Targets,
    ) -> Result<()> {
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

    /// Counts what would be erased.
    pub(super) fn count(&self) -> ForgottenInAgent {
        ForgottenInAgent {
            agent: self.of.agent.to_string(),
            segments: self.segments.len(),
            vectors: 0,
            facts: self.facts().map_or(0, |store| store.would_forget(&self.erases()).len()),
            tool_results: self.results.len(),
            engine_values: self.values.len(),
        }
    }

    /// Erases the selected data: derived data first, the archive last. This also removes what a
    /// killed run left behind, even if nothing in the memory matches the request.
    pub(super) fn forget(&self) -> Result<ForgottenInAgent> {
        let mut gone =
            ForgottenInAgent { agent: self.of.agent.to_string(), ..ForgottenInAgent::default() };
        if let Some(mut store) = self.facts() {
            gone.facts = store.forget(&self.erases())?.len();
        }
        for name in &self.results {
            gone.tool_results += usize::from(self.blobs.remove(name)?);
        }
        gone.engine_values = values::remove(&self.values)?;
        // Forgetting must not create a memory that was never used.
        if !self.folder.is_dir() {
            return Ok(gone);
        }
        let vectors = self.of.memory.stats()?.vectors;
        let ids: HashSet<SegmentId> = self.segments.iter().map(|segment| segment.id).collect();
        gone.segments = self.of.memory.forget(&ids)? + self.forget_since()?;
        gone.vectors = vectors.saturating_sub(self.of.memory.stats()?.vectors);
        Ok(gone)
    }

    /// Erases the segments of whole sessions that were archived after the plan was made.
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
        Some(locked(facts))
    }

    fn erases(&self) -> Vec<FactSelector<'_>> {
        let sessions = self.sessions.iter().map(|session| FactSelector::Session(session));
        let entries =
            self.entries.iter().map(|(session, ids)| FactSelector::Entries { session, ids });
        sessions
            .chain(entries)
            .chain(self.matching.as_deref().map(FactSelector::Matching))
            .collect()
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

/// Drops the segments that match an id only as a prefix, if another segment has exactly this id.
fn prefer_exact_ids(segments: &mut Vec<Segment>, ids: &[String]) {
    let is_exact = |segment: &Segment, id: &String| segment.entry_id.as_ref() == Some(id);
    for id in ids {
        if segments.iter().any(|segment| is_exact(segment, id)) {
            segments.retain(|segment| {
                let entry = segment.entry_id.as_ref();
                !entry.is_some_and(|of| of.starts_with(id.as_str())) || is_exact(segment, id)
            });
        }
    }
}

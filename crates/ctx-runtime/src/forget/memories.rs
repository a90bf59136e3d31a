//! What goes from the memory of an agent.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ctx_core::{EntryId, Error, ErrorKind, Result};
use ctx_memory::facts::{Erase, FactId, FactStore};
use ctx_memory::{Memory, Segment, SegmentId};
use ctx_session::blobs::FileBlobs;
use ctx_session::key::FileId;
use ctx_session::paths::Home;

use super::plan::Plan;
use super::{Forget, ForgottenMessage, InAgent, values};

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
    segments: Vec<Segment>,
    /// Whole sessions.
    sessions: BTreeSet<String>,
    /// Entries of sessions, and segments that are of no entry.
    entries: BTreeMap<String, BTreeSet<String>>,
    matching: Option<String>,
    results: Vec<String>,
    blobs: FileBlobs,
    values: Vec<PathBuf>,
    /// Whether the memory has a folder; one that was never used is not made by forgetting.
    is_there: bool,
}

impl<'r> InMemory<'r> {
    pub(super) fn of(home: &Home, what: &Forget, plan: &Plan, of: &'r Remembered) -> Result<Self> {
        let mut sessions: BTreeSet<String> = BTreeSet::new();
        let mut entries: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for session in &plan.sessions {
            for name in &session.names {
                if session.all {
                    sessions.insert(name.clone());
                } else if !session.entries.is_empty() {
                    let ids = session.entries.iter().map(ToString::to_string);
                    entries.entry(name.clone()).or_default().extend(ids);
                }
            }
        }
        if what.is_whole() {
            sessions.extend(what.session.clone());
        }
        // A session that is named bounds what a text is looked for in.
        let scope = what.session.as_ref().map(|session| {
            let names = plan.sessions.iter().flat_map(|session| session.names.iter().cloned());
            names.chain([session.clone()]).collect::<BTreeSet<String>>()
        });
        let is_unknown = |segment: &Segment| {
            let id = segment.entry_id.as_deref();
            id.is_some_and(|id| plan.unknown.iter().any(|unknown| unknown == id))
        };
        let wanted = |segment: &Segment| {
            let session = segment.session_id.as_str();
            let in_scope = || scope.as_ref().is_none_or(|scope| scope.contains(session));
            let holds = || plan.needle.as_ref().is_some_and(|n| n.is_in(&segment.content));
            let is_named = || {
                let id = segment.entry_id.as_ref();
                id.is_some_and(|id| entries.get(session).is_some_and(|ids| ids.contains(id)))
            };
            sessions.contains(session)
                || is_named()
                || in_scope() && (holds() || is_unknown(segment))
        };
        let segments = of.memory.select(wanted)?;
        for segment in &segments {
            let id = segment.entry_id.clone().unwrap_or_else(|| segment.id.to_string());
            entries.entry(segment.session_id.clone()).or_default().insert(id);
        }
        // Facts are looked through by themselves for a text, where it goes wherever it was said.
        let matching = what.matching.clone().filter(|_| scope.is_none());
        let blobs = FileBlobs::at(home.tool_results_dir(&of.agent));
        let needle = plan.needle.as_ref().filter(|_| scope.is_none());
        let results = plan.traces.in_blobs(&blobs, needle)?;
        let values = values::to_go(home, &of.agent, plan)?;
        let is_there = home.memory_dir(&of.agent).is_dir();
        Ok(Self { of, segments, sessions, entries, matching, results, blobs, values, is_there })
    }

    /// Entries that only the archive has.
    pub(super) fn only_archived(&self, unknown: &[String]) -> Vec<(String, ForgottenMessage)> {
        let of_entry =
            |segment: &&Segment| segment.entry_id.as_ref().is_some_and(|id| unknown.contains(id));
        let found = self.segments.iter().filter(of_entry);
        let message = |segment: &Segment| ForgottenMessage {
            entry: EntryId::from(segment.entry_id.as_deref().unwrap_or_default()),
            path: None,
            role: segment.role.clone(),
            begins: Some(segment.content.chars().take(80).collect::<String>().replace('\n', " ")),
        };
        found.map(|segment| (segment.session_id.clone(), message(segment))).collect()
    }

    /// What would go.
    pub(super) fn count(&self) -> InAgent {
        let mut facts: HashSet<FactId> = HashSet::new();
        if let Some(store) = self.facts() {
            self.each_erase(|erase| {
                facts.extend(store.would_forget(erase).iter().map(|fact| fact.id));
                Ok(())
            })
            // Nothing in it can fail.
            .unwrap_or_default();
        }
        InAgent {
            agent: self.of.agent.to_string(),
            segments: self.segments.len(),
            vectors: 0,
            facts: facts.len(),
            tool_results: self.results.len(),
            engine_values: self.values.len(),
        }
    }

    /// Lets it go: what was drawn from the archive first, the archive itself last. Even where nothing
    /// of it is there, what a run that was killed left behind is taken away.
    pub(super) fn forget(&self) -> Result<InAgent> {
        let mut gone = InAgent { agent: self.of.agent.to_string(), ..InAgent::default() };
        if let Some(mut store) = self.facts() {
            self.each_erase(|erase| {
                gone.facts += store.forget(erase)?.len();
                Ok(())
            })?;
        }
        for name in &self.results {
            gone.tool_results += usize::from(self.blobs.remove(name)?);
        }
        gone.engine_values = values::remove(&self.values)?;
        if !self.is_there {
            return Ok(gone);
        }
        let vectors = self.of.memory.stats()?.vectors;
        let ids: HashSet<SegmentId> = self.segments.iter().map(|segment| segment.id).collect();
        gone.segments = self.of.memory.forget(&ids)?;
        gone.vectors = vectors.saturating_sub(self.of.memory.stats()?.vectors);
        Ok(gone)
    }

    fn facts(&self) -> Option<MutexGuard<'_, FactStore>> {
        let facts = self.of.facts.as_ref()?;
        Some(facts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn each_erase(&self, mut each: impl FnMut(Erase<'_>) -> Result<()>) -> Result<()> {
        for session in &self.sessions {
            each(Erase::Session(session))?;
        }
        for (session, ids) in &self.entries {
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            each(Erase::Entries { session, ids: &ids })?;
        }
        match &self.matching {
            Some(text) => each(Erase::Matching(text)),
            None => Ok(()),
        }
    }
}

/// Refuses entries that nobody has, and those that several sessions of the archive have.
pub(super) fn check_unknown(
    unknown: &[String],
    found: &[(String, ForgottenMessage)],
) -> Result<()> {
    for id in unknown {
        let of_id = found.iter().filter(|(_, message)| *message.entry == **id);
        let sessions: BTreeSet<&str> = of_id.map(|(session, _)| session.as_str()).collect();
        if sessions.len() > 1 {
            let sessions = sessions.into_iter().take(4).collect::<Vec<_>>().join(", ");
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "several sessions of the archive have an entry of that id",
            )
            .with("entry", id)
            .with("sessions", sessions)
            .hint("say which one with --session"));
        }
        if sessions.is_empty() {
            return Err(Error::new(ErrorKind::NotFound, "no session has a message of that id")
                .with("entry", id)
                .hint(
                    "`ctx memory search` prints the entries of what it finds; a transcript outside \
                     of the home is looked into where it is named: `ctx memory forget FILE --entry ID`",
                ));
        }
    }
    Ok(())
}

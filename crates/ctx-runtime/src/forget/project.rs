//! Erases the archived sessions of a project.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ctx_core::Result;
use ctx_memory::archive::ArchivedSessions;
use ctx_memory::facts::FactSelector;
use ctx_session::AgentHomes;
use serde::Serialize;

use crate::lookup::Lookup;
use crate::sync::locked;

/// How long to wait for another process that archives a session.
const WAIT: Duration = Duration::from_secs(60);

/// What was erased for a project.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ForgottenProject {
    /// The folder.
    pub project: PathBuf,
    /// Its sessions, by their names in memory.
    pub sessions: BTreeSet<String>,
    /// Number of segments of the archive.
    pub segments: usize,
    /// Number of facts derived from them.
    pub facts: usize,
    /// Whether nothing was erased.
    pub dry_run: bool,
}

impl Lookup {
    /// Erases the archived sessions of other agents in a folder and its subfolders, and excludes
    /// these folders from now on.
    ///
    /// # Errors
    ///
    /// If the memory cannot be read or written, or if another process archives for too long.
    pub fn forget_project(
        &self,
        homes: &AgentHomes,
        project: &Path,
        dry_run: bool,
    ) -> Result<ForgottenProject> {
        let project = std::path::absolute(project).unwrap_or_else(|_| project.to_owned());
        // An agent may have been started under another path of the folder.
        let folders = [project.canonicalize().unwrap_or_else(|_| project.clone()), project];
        let mut archived = ArchivedSessions::of(&self.folder);
        let lock = if dry_run { None } else { Some(archived.lock(WAIT)?) };
        archived.refresh()?;
        let is_of = |at: &Option<PathBuf>| {
            at.as_ref().is_some_and(|at| folders.iter().any(|folder| at.starts_with(folder)))
        };
        let noted = archived.iter().map(|(_, known)| known).filter(|known| is_of(&known.project));
        let found = homes.sessions().sessions.into_iter().filter(|found| is_of(&found.project));
        let names = noted.map(|known| known.session.clone()).chain(found.map(|f| f.session_id));
        let mut gone = ForgottenProject { dry_run, ..ForgottenProject::default() };
        let mut segments = HashSet::new();
        for name in names.collect::<BTreeSet<_>>() {
            let of_session = self.memory.of_session(&name)?;
            segments.extend(of_session.iter().map(|segment| segment.id));
            gone.sessions.extend((!of_session.is_empty()).then_some(name));
        }
        gone.segments = segments.len();
        let erases: Vec<_> =
            gone.sessions.iter().map(|session| FactSelector::Session(session)).collect();
        let mut facts = self.facts.as_deref().map(locked);
        gone.facts = facts.as_ref().map_or(0, |facts| facts.would_forget(&erases).len());
        if let Some(lock) = lock {
            facts.as_mut().map_or(Ok(Vec::new()), |facts| facts.forget(&erases))?;
            self.memory.forget(&segments)?;
            // Done last: if this run is killed, the next run still finds the session names.
            for folder in folders.iter().collect::<BTreeSet<_>>() {
                archived.forget(&lock, folder)?;
            }
            self.memory.settle()?;
        }
        [gone.project, _] = folders;
        Ok(gone)
    }
}

//! The sessions of the other agents on this machine, without those that the user excluded.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use ctx_core::Result;
use ctx_memory::ExcludedProjects;
use ctx_memory::archive::ArchivedSessions;
use ctx_session::{AgentHomes, DiscoveredSession};

use super::Lookup;
use crate::sync::locked;

/// The sessions of other agents, as seen from one folder.
pub struct OtherSessions {
    /// The folders of the agents.
    pub homes: AgentHomes,
    /// The folder whose sessions come first.
    pub folder: PathBuf,
    excluded: ExcludedProjects,
    /// The archived sessions, and the forgotten projects.
    pub(super) archived: Mutex<ArchivedSessions>,
}

impl OtherSessions {
    /// Excludes what the configuration and the archive of a memory exclude.
    ///
    /// # Errors
    ///
    /// Invalid patterns of excluded projects.
    pub fn new(lookup: &Lookup, homes: AgentHomes, folder: PathBuf) -> Result<Self> {
        Ok(Self {
            excluded: lookup.config.excluded()?,
            archived: Mutex::new(ArchivedSessions::of(&lookup.folder)),
            folder: folder.canonicalize().unwrap_or(folder),
            homes,
        })
    }

    /// Returns the newest sessions, at most `most`: those of the folder first, each part newest
    /// first. Omits sessions of excluded or forgotten projects, and files that cannot be read.
    ///
    /// # Errors
    ///
    /// If the list of forgotten projects cannot be read.
    pub fn newest(&self, most: usize) -> Result<Vec<DiscoveredSession>> {
        locked(&self.archived).refresh()?;
        let files = self.homes.files().sessions.into_iter();
        let complete = |mut found: DiscoveredSession| match found.complete() {
            Ok(true) => Some(found),
            Ok(false) | Err(_) => None,
        };
        let allowed = files.filter_map(complete).filter(|found| self.allows(found));
        let mut sessions: Vec<_> = allowed.take(most).collect();
        self.put_folder_first(&mut sessions);
        Ok(sessions)
    }

    /// Whether neither the configuration nor `ctx memory forget` excludes the project of a session.
    pub(super) fn allows(&self, found: &DiscoveredSession) -> bool {
        let archived = locked(&self.archived);
        let is_out = |at: &Path| self.excluded.has(at) || archived.is_forgotten(at);
        !found.project.as_deref().is_some_and(is_out)
    }

    /// Moves the sessions of the folder to the front. The order is otherwise unchanged.
    pub(super) fn put_folder_first(&self, sessions: &mut [DiscoveredSession]) {
        sessions.sort_by_cached_key(|found| {
            let project = found.project.as_deref();
            !project.is_some_and(|at| {
                at == self.folder || at.canonicalize().ok().as_ref() == Some(&self.folder)
            })
        });
    }
}

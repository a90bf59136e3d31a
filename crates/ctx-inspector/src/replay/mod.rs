//! Transcripts as a source: given files, and the sessions of a home.
//!
//! A session is replayed when it is opened, on a thread of its own, and again when its file
//! changed; the most recently used replays are cached. Summaries are extractive: viewing a session
//! calls no model.

mod compactions;
mod jobs;
mod listing;
mod session;
mod setup;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ctx_core::{Error, ErrorKind, Result};
use ctx_session::{AgentHomes, DiscoveredSession};

use self::jobs::Jobs;
use self::listing::{ListedSession, Listing};
use super::shape::SessionHead;
use super::source::{Source, SourceState};

pub use self::setup::{ReplayOverrides, ReplaySettings};

/// The sessions of a home, and given transcripts.
pub struct Replays {
    listing: Listing,
    listed: Mutex<Arc<Vec<ListedSession>>>,
    jobs: Jobs,
}

impl Replays {
    /// Creates a source of these files and, if `of_home`, the sessions of the home.
    #[must_use]
    pub fn new(with: ReplaySettings, files: Vec<PathBuf>, of_home: bool) -> Self {
        let (agents, cache) = (AgentHomes::default(), Mutex::default());
        let listing = Listing { home: with.home.clone(), files, of_home, agents, cache };
        Self { listing, listed: Mutex::default(), jobs: Jobs::new(with) }
    }

    /// Adds the sessions of other agents.
    #[must_use]
    pub fn with_agents(mut self, agents: AgentHomes) -> Self {
        self.listing.agents = agents;
        self
    }

    /// Returns the API id of a session by its file, session key or session id.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] for an unknown session, and errors of listing sessions.
    pub fn find(&self, named: &str) -> Result<String> {
        let listed = self.refresh()?;
        let found = listed.iter().find(|listed| listed.is_named(named));
        found.map(|listed| listed.head.id.clone()).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "unknown session")
                .with("session", named)
                .hint("give the path of a transcript, or a key or id listed by `ctx sessions`")
        })
    }

    fn refresh(&self) -> Result<Arc<Vec<ListedSession>>> {
        let listed = Arc::new(self.listing.read()?);
        *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = listed.clone();
        Ok(listed)
    }

    /// Returns the session with that id. If it is missing, the list is refreshed first.
    fn listed(&self, id: &str) -> Result<Option<ListedSession>> {
        let known = self.listed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let of = |all: &[ListedSession]| all.iter().find(|listed| listed.head.id == id).cloned();
        match of(&known) {
            Some(found) => Ok(Some(found)),
            None => Ok(of(&self.refresh()?)),
        }
    }
}

impl Source for Replays {
    fn sessions(&self) -> Result<Vec<SessionHead>> {
        let listed = self.refresh()?;
        self.jobs.warm(&listed);
        let complete =
            |listed: &ListedSession| self.jobs.completed(listed.head.clone(), &listed.path);
        Ok(listed.iter().map(complete).collect())
    }

    fn open(&self, id: &str) -> Result<Option<SourceState>> {
        let Some(listed) = self.listed(id)? else { return Ok(None) };
        self.jobs.open(&listed).map(Some)
    }

    fn forget(&self, id: &str) {
        if let Ok(Some(listed)) = self.listed(id) {
            self.jobs.forget(&listed.path);
        }
    }

    fn stamp(&self, id: Option<&str>) -> Option<u64> {
        match id {
            None => Some(self.listing.stamp().wrapping_add(self.jobs.ended())),
            Some(id) => {
                let listed = self.listed(id).ok().flatten()?;
                // Starts a replay if the file changed.
                let _ = self.jobs.open(&listed);
                Some(self.jobs.generation(&listed.path))
            }
        }
    }
}

/// Returns a number that changes with a file or a database session; `None` if it does not exist.
pub(crate) fn stamp_of(path: &Path) -> Option<u64> {
    let found = DiscoveredSession::at(path)?;
    let mut hasher = blake3::Hasher::new();
    hasher.update(&found.bytes.to_le_bytes());
    hasher.update(&found.modified.0.to_le_bytes());
    Some(number_of(&hasher))
}

/// Returns the first bytes of a hash as a number.
fn number_of(hasher: &blake3::Hasher) -> u64 {
    let hash = hasher.finalize();
    hash.as_bytes().iter().take(8).fold(0, |number, &byte| (number << 8) | u64::from(byte))
}

/// Returns the API id of a session: its kind and a hash of `parts`.
fn id_of(kind: &str, parts: &[&[u8]]) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    format!("{kind}-{}", &hasher.finalize().to_hex()[..16])
}

//! Transcripts as a source: files that were named, and the sessions of a home.
//!
//! A session is replayed when somebody opens it, once for each state of its file, in a thread of its
//! own; the newest few are kept. Summaries are extractive: a look at a session asks no model.

mod compactions;
mod jobs;
mod listed;
mod replayed;
mod setup;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use ctx_core::{Error, ErrorKind, Result};
use ctx_session::discover::{AgentHomes, FoundSession};
use ctx_session::key::SessionKey;

use self::jobs::Jobs;
use self::listed::{Listed, Listing};
use super::shape::SessionHead;
use super::source::{Source, State};

pub use self::setup::{Fit, With};

/// The sessions of a home, and transcripts that were named.
pub struct Replays {
    listing: Listing,
    listed: Mutex<Arc<Vec<Listed>>>,
    jobs: Jobs,
}

impl Replays {
    /// The sessions of the home, where `home` says so, and these files.
    #[must_use]
    pub fn new(with: With, files: Vec<PathBuf>, of_home: bool) -> Self {
        let (agents, known) = (AgentHomes::default(), Mutex::default());
        let listing = Listing { home: with.home.clone(), files, of_home, agents, known };
        Self { listing, listed: Mutex::default(), jobs: Jobs::new(with) }
    }

    /// The same, with the sessions of other agents.
    #[must_use]
    pub fn with_agents(mut self, agents: AgentHomes) -> Self {
        self.listing.agents = agents;
        self
    }

    /// The id in this API of the session that a person means: a file, a session key or a session id.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] where there is no such thing, and what listing sessions may give.
    pub fn find(&self, named: &str) -> Result<String> {
        let listed = self.refresh()?;
        let found = listed.iter().find(|listed| listed.is_named(named));
        found.map(|listed| listed.head.id.clone()).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "there is no such session")
                .with("session", named)
                .hint("name a transcript, or a key or id of `ctx sessions`")
        })
    }

    fn refresh(&self) -> Result<Arc<Vec<Listed>>> {
        let listed = Arc::new(self.listing.read()?);
        *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = listed.clone();
        Ok(listed)
    }

    /// The session of that id. The list is read anew where it does not have it.
    fn listed(&self, id: &str) -> Result<Option<Listed>> {
        let known = self.listed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let of = |all: &[Listed]| all.iter().find(|listed| listed.head.id == id).cloned();
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
        let complete = |listed: &Listed| self.jobs.completed(listed.head.clone(), &listed.path);
        Ok(listed.iter().map(complete).collect())
    }

    fn open(&self, id: &str) -> Result<Option<State>> {
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
                // Whoever looks at it wants it as it is now.
                let _ = self.jobs.open(&listed);
                Some(self.jobs.generation(&listed.path))
            }
        }
    }
}

/// A number that changes when a file or a session of a database does; none where there is none.
pub(crate) fn stamp_of(path: &Path) -> Option<u64> {
    let (bytes, time) = match path.metadata() {
        Ok(metadata) => {
            let time = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
            (metadata.len(), time.map_or(0, |time| time.as_nanos()))
        }
        Err(_) => {
            let found = FoundSession::at(path)?;
            (found.bytes, found.modified.0.unsigned_abs().into())
        }
    };
    let mut hasher = blake3::Hasher::new();
    hasher.update(&bytes.to_le_bytes());
    hasher.update(&time.to_le_bytes());
    Some(number_of(&hasher))
}

/// The beginning of a hash as a number.
fn number_of(hasher: &blake3::Hasher) -> u64 {
    let hash = hasher.finalize();
    hash.as_bytes().iter().take(8).fold(0, |number, &byte| (number << 8) | u64::from(byte))
}

/// An id that is a name for nothing but itself.
fn id_of(kind: &str, parts: &[&[u8]]) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    format!("{kind}-{}", &hasher.finalize().to_hex()[..16])
}

/// A key, where it is one that this version reads.
fn key_of(key: &str) -> Option<SessionKey> {
    key.parse().ok()
}

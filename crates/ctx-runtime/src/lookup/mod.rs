//! An agent's memory for explicit requests: by a command, or by a tool that a model calls.

mod archiver;
pub mod cited;
mod fact_sources;
mod ingest;
mod others;
pub mod provenance;
mod recall;
mod remember;
mod search;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use ctx_config::SystemRules;
use ctx_core::{Counter, Error, ErrorKind, Result};
use ctx_engine_registry::{Registry, SelectFor, selected_engine};
use ctx_memory::archive::{ArchivedSessions, SegmentMaker};
use ctx_memory::facts::FactStore;
use ctx_memory::{Config, Memory};
use ctx_session::key::FileId;
use ctx_session::{Home, Transcript, find_session, is_transcript};

pub use archiver::{ArchiveProgress, Archiver};
pub use fact_sources::FactOrigin;
pub use ingest::IngestReport;
pub use others::OtherSessions;
pub use recall::{RecallQuery, RecallReport, RecalledPassage};
pub(crate) use remember::remember;
pub use search::{SearchHit, SearchQuery, SearchReport, search};

use crate::memory::{AgentMemory, memory_session};
use crate::sync::locked;

/// An agent's memory, opened as configured. Opening does not create one.
///
/// Explicit requests work even if memory is disabled in the configuration ([`Config::enabled`]) and
/// nothing is recalled or archived automatically.
pub struct Lookup {
    /// The home.
    pub home: Home,
    /// The agent.
    pub agent: FileId,
    /// The folder of the memory.
    pub folder: PathBuf,
    /// The memory section of the configuration.
    pub config: Config,
    /// The token counter.
    pub counter: Counter,
    /// The archived messages.
    pub memory: Memory,
    /// The facts; absent if they cannot be read.
    pub facts: Option<Arc<Mutex<FactStore>>>,
    /// Warnings from opening the memory.
    pub warnings: Vec<String>,
}

impl Lookup {
    /// Opens the memory of an agent.
    ///
    /// # Errors
    ///
    /// An invalid configuration.
    pub fn open(config: &ctx_config::Config, home: Home, agent: FileId) -> Result<Self> {
        Registry::collect()?.memory_named(config)?;
        let counter = config.section::<SystemRules>()?.counter;
        let engine = selected_engine(config, SelectFor::default())?.id;
        let section = Config::for_engine(config, &engine)?;
        let folder = home.memory_dir(&agent);
        let AgentMemory { memory, facts, warnings, .. } =
            AgentMemory::configured(config, &section, &folder, agent.as_str());
        Ok(Self { home, agent, folder, config: section, counter, memory, facts, warnings })
    }

    /// Returns the maker of segments for a session's messages.
    fn maker(&self, session: &str) -> SegmentMaker {
        let maker = SegmentMaker::new(self.agent.to_string(), session, self.counter);
        maker.with_redaction(self.config.redaction)
    }

    /// Returns the name of a session in memory, for its key, its id or a prefix of that name.
    ///
    /// # Errors
    ///
    /// If the sessions of the agent cannot be read, or if the name is unknown.
    pub fn session(&self, named: &str) -> Result<String> {
        if let Some(found) = find_session(&self.home, &self.agent, named)? {
            let transcript = found.path.as_deref().and_then(|path| Transcript::open(path).ok());
            let name = transcript
                .zip(found.path)
                .map(|(transcript, path)| memory_session(transcript.header.id.as_deref(), &path));
            return Ok(name.unwrap_or(found.entry.session_id));
        }
        if let Some(name) = self.memory.session_named(named)? {
            return Ok(name);
        }
        let of_session = |facts: &Arc<Mutex<FactStore>>| {
            locked(facts).facts().any(|fact| fact.session_id == named)
        };
        if self.facts.as_ref().is_some_and(of_session) {
            return Ok(named.to_owned());
        }
        let hint = "`ctx sessions` lists the keys of sessions, `ctx memory stats --json` those \
                    that were archived";
        Err(Error::new(ErrorKind::NotFound, "unknown session")
            .with("session", named)
            .with("agent", &self.agent)
            .hint(hint))
    }

    /// Rebuilds the index if it is missing: a search finds only what the index contains.
    ///
    /// # Errors
    ///
    /// If the archive cannot be read.
    pub fn index(&self) -> Result<()> {
        match self.memory.wordless()? {
            0 => Ok(()),
            _ => self.memory.settle(),
        }
    }

    /// Returns the transcript path of an archived session of another agent, by its name in memory.
    pub fn transcript(&self, session: &str) -> Option<PathBuf> {
        let mut archived = ArchivedSessions::of(&self.folder);
        archived.refresh().ok()?;
        let mut of_session = archived.iter().filter(|(_, known)| known.session == session);
        of_session.find(|(path, _)| is_transcript(path)).map(|(path, _)| path.to_owned())
    }
}

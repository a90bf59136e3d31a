//! An agent's memory, asked by hand: by a command, or by a tool that a model calls.

mod ingest;
mod recall;
mod remember;
mod search;
mod stored;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use ctx_core::{Counter, Error, ErrorKind, Profile, Result};
use ctx_engine_registry::{SelectFor, selected_engine};
use ctx_memory::archive::{ArchivedSessions, SegmentMaker};
use ctx_memory::facts::FactStore;
use ctx_memory::{Config, Memory};
use ctx_session::key::FileId;
use ctx_session::paths::Home;
use ctx_session::{Transcript, is_transcript};

pub use ingest::Ingested;
pub use recall::{RecallAsked, Recalled, RecalledFactReport, RecalledPassage};
pub(crate) use remember::remember;
pub use search::{SearchAsked, SearchHit, Searched, search};
pub use stored::{StoredSession, find_session};

use crate::{AgentMemory, memory_session};

/// An agent's memory, opened as the configuration says. Nothing is made where there is none yet.
///
/// What is asked for by hand is looked for also where the configuration has no memory
/// ([`Config::enabled`]), and nothing is recalled or archived by itself.
pub struct Lookup {
    /// Where everything is.
    pub home: Home,
    /// Whose memory it is.
    pub agent: FileId,
    /// The folder of the memory.
    pub folder: PathBuf,
    /// The memory's section of the configuration.
    pub config: Config,
    /// Whose defaults are in force.
    pub profile: Profile,
    /// What was said.
    pub memory: Memory,
    /// What is known; absent where it cannot be read.
    pub facts: Option<Arc<Mutex<FactStore>>>,
    /// What a person should be told of how it was opened.
    pub warnings: Vec<String>,
}

impl Lookup {
    /// Opens the memory of an agent.
    ///
    /// # Errors
    ///
    /// A configuration that makes no sense.
    pub fn open(config: &ctx_engine_registry::Config, home: Home, agent: FileId) -> Result<Self> {
        let profile = config.profile();
        let engine = selected_engine(config, SelectFor::default())?.id;
        let section = Config::for_engine(config, &engine)?;
        let folder = home.memory_dir(&agent);
        let AgentMemory { memory, facts, warnings, .. } =
            AgentMemory::configured(config, &section, &folder, agent.as_str());
        Ok(Self { home, agent, folder, config: section, profile, memory, facts, warnings })
    }

    /// How tokens are counted.
    #[must_use]
    pub fn counter(&self) -> Counter {
        Counter::for_profile(self.profile)
    }

    /// What makes segments of a session's messages.
    #[must_use]
    pub fn maker(&self, session: &str) -> SegmentMaker {
        let maker = SegmentMaker::new(self.agent.to_string(), session, self.counter());
        maker.with_redaction(self.config.redaction)
    }

    /// The name under which a session stands in memory, for its key, its id or the beginning of that name.
    ///
    /// # Errors
    ///
    /// Where the sessions of the agent cannot be read, and where nobody knows that name.
    pub fn session(&self, named: &str) -> Result<String> {
        if let Some(found) = find_session(&self.home, &self.agent, named)? {
            let transcript = found.path.as_deref().and_then(|path| Transcript::open(path).ok());
            let name = transcript
                .zip(found.path)
                .map(|(transcript, path)| memory_session(transcript.header().id.as_deref(), &path));
            return Ok(name.unwrap_or(found.entry.session_id));
        }
        if let Some(name) = self.memory.session_named(named)? {
            return Ok(name);
        }
        let of_session = |facts: &Arc<Mutex<FactStore>>| {
            crate::session::locked(facts).facts().any(|fact| fact.session_id == named)
        };
        if self.facts.as_ref().is_some_and(of_session) {
            return Ok(named.to_owned());
        }
        let hint = "`ctx sessions` lists the keys of sessions, `ctx memory stats --json` those that \
                    were archived";
        Err(Error::new(ErrorKind::NotFound, "there is no session of that name")
            .with("session", named)
            .with("agent", &self.agent)
            .hint(hint))
    }

    /// Makes the index where it was lost: a search finds nothing of what is not in it.
    ///
    /// # Errors
    ///
    /// Where the archive cannot be read.
    pub fn index(&self) -> Result<()> {
        match self.memory.wordless()? {
            0 => Ok(()),
            _ => self.memory.settle(),
        }
    }

    /// Where the transcript is of a session of another agent that was archived, by its name in memory.
    #[must_use]
    pub fn transcript(&self, session: &str) -> Option<PathBuf> {
        let mut archived = ArchivedSessions::of(&self.folder);
        archived.refresh().ok()?;
        let mut of_session = archived.iter().filter(|(_, known)| known.session == session);
        of_session.find(|(path, _)| is_transcript(path)).map(|(path, _)| path.to_owned())
    }
}

//! `ctx memory`.

mod facts;
mod forget;
mod ingest;
mod rebuild;
mod search;
mod stats;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use ctx_core::{Counter, Error, ErrorKind, Profile, Timestamp};
use ctx_engine_registry::{SelectFor, selected_engine};
use ctx_memory::archive::SegmentMaker;
use ctx_memory::facts::FactStore;
use ctx_memory::{Config, Memory};
use ctx_runtime::{AgentMemory, memory_session};
use ctx_session::Transcript;
use ctx_session::key::{FileId, SessionKey};
use ctx_session::paths::Home;
use ctx_session::store::SessionStore;

use crate::args::{self, Global, MemoryCommand};
use crate::failure::misuse;
use crate::out::Out;
use crate::setup;

pub(crate) fn run(global: &Global, args: &args::Memory, out: &Out) -> anyhow::Result<ExitCode> {
    match &args.command {
        MemoryCommand::Ingest(args) => ingest::run(global, args, out),
        MemoryCommand::Stats(args) => stats::run(global, args, out),
        MemoryCommand::Search(args) => search::run(global, args, out),
        MemoryCommand::Facts(args) => facts::run(global, args, out),
        MemoryCommand::Forget(args) => forget::run(global, args, out),
        MemoryCommand::Rebuild(args) => rebuild::run(global, args, out),
    }
}

/// An agent's memory, opened as the configuration says.
pub(crate) struct OfAgent {
    pub(crate) home: Home,
    pub(crate) agent: FileId,
    pub(crate) folder: PathBuf,
    pub(crate) config: Config,
    pub(crate) profile: Profile,
    pub(crate) memory: Memory,
    /// What is known; absent where it cannot be read.
    pub(crate) facts: Option<Arc<Mutex<FactStore>>>,
}

impl OfAgent {
    /// Opens the memory of an agent. Nothing is made where there is none yet.
    pub(crate) fn open(global: &Global, agent: &str, out: &Out) -> anyhow::Result<Self> {
        let agent: FileId = agent.parse().map_err(misuse)?;
        let home = Home::from_env()?;
        let config = setup::config(global)?;
        let profile = config.profile();
        let engine = selected_engine(&config, SelectFor::default())?.id;
        let section = Config::for_engine(&config, &engine)?;
        let folder = home.memory_dir(&agent);
        let AgentMemory { memory, facts, warnings, .. } =
            AgentMemory::configured(&config, &section, &folder, agent.as_str());
        warnings.iter().for_each(|warning| out.warn(warning));
        Ok(Self { home, agent, folder, config: section, profile, memory, facts })
    }

    /// What makes segments of a session's messages.
    pub(crate) fn maker(&self, session: &str) -> SegmentMaker {
        let counter = Counter::for_profile(self.profile);
        let maker = SegmentMaker::new(self.agent.to_string(), session, counter);
        maker.with_redaction(self.config.redaction)
    }

    /// The name under which a session stands in memory, for its key, its id or its path.
    ///
    /// # Errors
    ///
    /// Where the sessions of the agent cannot be read, and where nobody knows that name.
    pub(crate) fn session(&self, named: &str) -> anyhow::Result<String> {
        let path = Path::new(named);
        let opened = path.is_file().then(|| Transcript::open(path));
        if let Some(Ok(transcript)) = &opened {
            return Ok(name_of(transcript, path));
        }
        let stored = SessionStore::at(self.home.sessions_file(&self.agent)).load()?;
        let of_key = |key: SessionKey| {
            let entry = stored.get(&key)?.clone();
            let path = self.home.transcript(&key, &entry).ok().filter(|path| path.is_file());
            let opened = path.and_then(|path| Some((Transcript::open(&path).ok()?, path)));
            Some(opened.map_or(entry.session_id, |(transcript, path)| name_of(&transcript, &path)))
        };
        if let Some(name) = named.parse().ok().and_then(of_key) {
            return Ok(name);
        }
        let is_stored = stored.all().any(|(_, entry)| entry.session_id == named);
        if is_stored || self.knows(named)? {
            return Ok(named.to_owned());
        }
        // A file of that name is meant, if anything is.
        if let Some(Err(error)) = opened {
            return Err(error.into());
        }
        let hint = "`ctx sessions` lists the keys of sessions, `ctx memory stats --json` those that \
                    were archived; the path of a transcript will do as well";
        Err(Error::new(ErrorKind::NotFound, "there is no session of that name")
            .with("session", named)
            .with("agent", &self.agent)
            .hint(hint)
            .into())
    }

    /// Whether anything in memory is of that session.
    fn knows(&self, session: &str) -> anyhow::Result<bool> {
        let of_session = |facts: &Arc<Mutex<FactStore>>| {
            let facts = facts.lock().unwrap_or_else(PoisonError::into_inner);
            facts.facts().any(|fact| fact.session_id == session)
        };
        if self.facts.as_ref().is_some_and(of_session) {
            return Ok(true);
        }
        let mut is_known = false;
        self.memory.select(|segment| {
            is_known |= segment.session_id == session;
            false
        })?;
        Ok(is_known)
    }

    /// Makes the index where it was lost: a search finds nothing of what is not in it.
    pub(crate) fn index(&self, out: &Out) -> anyhow::Result<()> {
        if self.memory.wordless()? > 0 {
            let waiting = out.waiting("making the index anew");
            self.memory.settle()?;
            waiting.finish_and_clear();
        }
        Ok(())
    }

    /// Makes the vectors that are missing. A model that fails is told of: it is done another time.
    fn embed(&self, out: &Out) -> anyhow::Result<()> {
        let waiting = out.waiting("making vectors");
        let made = setup::block_on(async { Ok(self.memory.embed().await) });
        waiting.finish_and_clear();
        if let Err(error) = made? {
            out.warn(format!("words alone decide what is recalled: {error}"));
        }
        Ok(())
    }

    /// Says what the memory did without.
    pub(crate) fn warn(&self, out: &Out) {
        self.memory.take_warnings().iter().for_each(|warning| out.warn(warning));
    }
}

/// The name under which the session of a transcript stands in memory.
pub(crate) fn name_of(transcript: &Transcript, path: &Path) -> String {
    memory_session(transcript.header().id.as_deref(), path)
}

/// What time it is.
pub(crate) fn now() -> Timestamp {
    Timestamp(jiff::Timestamp::now().as_millisecond())
}

/// A time for people, in UTC.
fn minute(at: Timestamp) -> String {
    let at = jiff::Timestamp::from_millisecond(at.0).ok();
    at.map_or_else(|| "-".to_owned(), |at| at.strftime("%Y-%m-%d %H:%M").to_string())
}

//! Searches in the memories of a home.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use ctx_core::{Error, ErrorKind, Result};
use ctx_engine_registry::{Config, SelectFor, selected_engine};
use ctx_runtime::AgentMemory;
use ctx_runtime::lookup::{self, SearchAsked, Searched};
use ctx_session::clock;
use ctx_session::key::FileId;
use ctx_session::paths::Home;
use serde::{Deserialize, Serialize};

use super::replay::stamp_of;

/// So many hits unless said otherwise, and at most.
const HITS: usize = 20;
const MOST_HITS: usize = 200;

/// What is searched for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct MemoryAsked {
    q: String,
    agent: Option<String>,
    session: Option<String>,
    limit: Option<usize>,
}

/// What was found.
#[derive(Debug, Serialize)]
pub(crate) struct MemoryFound {
    #[serde(flatten)]
    searched: Searched,
    warnings: Vec<String>,
}

/// Searches what the agents of a home archived. Nothing is written.
#[derive(Clone)]
pub struct MemorySearch {
    config: Config,
    home: Home,
    opened: Arc<Mutex<HashMap<FileId, (u64, AgentMemory)>>>,
}

impl std::fmt::Debug for MemorySearch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemorySearch").field("home", &self.home).finish_non_exhaustive()
    }
}

impl MemorySearch {
    /// A search over the memories of this home, as the configuration has them.
    #[must_use]
    pub fn new(config: Config, home: Home) -> Self {
        Self { config, home, opened: Arc::default() }
    }

    /// The agents that archived something.
    pub(crate) fn agents(&self) -> Vec<String> {
        let agents = self.home.agents().unwrap_or_default().into_iter();
        let archived =
            agents.filter(|agent| self.home.memory_dir(agent).join("segments.jsonl").is_file());
        archived.map(|agent| agent.to_string()).collect()
    }

    pub(crate) async fn search(&self, asked: &MemoryAsked) -> Result<MemoryFound> {
        let agent: FileId = match &asked.agent {
            Some(agent) => agent.parse()?,
            None => FileId::main(),
        };
        let memory = self.memory(&agent)?;
        let mut warnings = memory.warnings.clone();
        let search = SearchAsked {
            query: &asked.q,
            session: asked.session.as_deref().filter(|session| !session.is_empty()),
            limit: asked.limit.unwrap_or(HITS).min(MOST_HITS),
            explain: true,
            now: clock::now(),
        };
        let mut searched = lookup::search(&memory.memory, &agent, &search).await?;
        searched.session.clone_from(&asked.session);
        warnings.append(&mut searched.warnings);
        Ok(MemoryFound { searched, warnings })
    }

    /// The memory of an agent, opened anew where others wrote to it.
    fn memory(&self, agent: &FileId) -> Result<AgentMemory> {
        let folder = self.home.memory_dir(agent);
        let Some(stamp) = stamp_of(&folder.join("segments.jsonl")) else {
            return Err(Error::new(ErrorKind::NotFound, "this agent archived nothing")
                .with("agent", agent)
                .hint("memory is on with the engine memory-context; `ctx memory ingest` archives a transcript"));
        };
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, memory)) = opened.get(agent)
            && *at == stamp
        {
            return Ok(memory.clone());
        }
        let engine = selected_engine(&self.config, SelectFor::default())?.id;
        let section = ctx_memory::Config::for_engine(&self.config, &engine)?;
        let memory = AgentMemory::configured(&self.config, &section, &folder, agent.as_str());
        let memory = memory.read_only();
        opened.insert(agent.clone(), (stamp, memory.clone()));
        Ok(memory)
    }
}

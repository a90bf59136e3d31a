//! Searches the memories of a home.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use ctx_config::Config;
use ctx_core::{Error, ErrorKind, Result};
use ctx_engine_registry::{SelectFor, selected_engine};
use ctx_runtime::AgentMemory;
use ctx_runtime::lookup::{self, SearchQuery, SearchReport};
use ctx_session::key::FileId;
use ctx_session::{Home, clock};
use serde::{Deserialize, Serialize};

use super::replay::stamp_of;

/// The default and the maximum number of hits.
const HITS: usize = 20;
const MOST_HITS: usize = 200;

/// The query.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct MemoryQuery {
    q: String,
    agent: Option<String>,
    session: Option<String>,
    limit: Option<usize>,
}

/// The result.
#[derive(Debug, Serialize)]
pub(crate) struct MemoryHits {
    #[serde(flatten)]
    searched: SearchReport,
    warnings: Vec<String>,
}

/// Searches the messages that the agents of a home archived. Read-only.
#[derive(Clone)]
pub struct MemorySearch {
    config: Config,
    home: Home,
    opened: Arc<Mutex<HashMap<FileId, (u64, AgentMemory)>>>,
}

impl MemorySearch {
    /// Creates a search over the memories of this home.
    #[must_use]
    pub fn new(config: Config, home: Home) -> Self {
        Self { config, home, opened: Arc::default() }
    }

    /// Returns the agents with an archive.
    pub(crate) fn agents(&self) -> Vec<String> {
        let agents = self.home.agents().unwrap_or_default().into_iter();
        let archived =
            agents.filter(|agent| self.home.memory_dir(agent).join("segments.jsonl").is_file());
        archived.map(|agent| agent.to_string()).collect()
    }

    pub(crate) async fn search(&self, query: &MemoryQuery) -> Result<MemoryHits> {
        let agent: FileId = match &query.agent {
            Some(agent) => agent.parse()?,
            None => FileId::main(),
        };
        let memory = self.memory(&agent)?;
        let mut warnings = memory.warnings.clone();
        let search = SearchQuery {
            query: &query.q,
            session: query.session.as_deref().filter(|session| !session.is_empty()),
            limit: query.limit.unwrap_or(HITS).min(MOST_HITS),
            explain: true,
            now: clock::now(),
        };
        let mut searched = lookup::search(&memory.memory, &agent, &search).await?;
        searched.session.clone_from(&query.session);
        warnings.append(&mut searched.warnings);
        Ok(MemoryHits { searched, warnings })
    }

    /// Returns the memory of an agent. It is reopened if another process wrote to it.
    fn memory(&self, agent: &FileId) -> Result<AgentMemory> {
        let folder = self.home.memory_dir(agent);
        let Some(stamp) = stamp_of(&folder.join("segments.jsonl")) else {
            return Err(Error::new(ErrorKind::NotFound, "this agent has no archive")
                .with("agent", agent)
                .hint("memory requires the engine memory-context; `ctx memory ingest` archives a transcript"));
        };
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, memory)) = opened.get(agent)
            && *known == stamp
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

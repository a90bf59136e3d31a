//! Archives messages in memory before their transcript is removed.

use std::path::PathBuf;

use ctx_config::{Config, SystemRules};
use ctx_core::{Counter, Result, Timestamp};
use ctx_engine_registry::{SelectFor, selected_engine};
use ctx_memory::Config as MemoryConfig;
use ctx_session::key::FileId;
use ctx_session::{Home, Transcript};

use crate::memory::AgentMemory;

/// The memory of an agent, if enabled.
pub(crate) struct MemoryArchive {
    memory: Option<AgentMemory>,
    counter: Counter,
}

impl MemoryArchive {
    /// Opens the memory as configured. `known` is the agent's memory, if it is already open.
    pub(super) fn of(
        home: &Home,
        config: &Config,
        agent: &FileId,
        known: Option<AgentMemory>,
    ) -> Result<Self> {
        let wanted = SelectFor { agent: Some(agent.as_str()), ..SelectFor::default() };
        let engine = selected_engine(config, wanted)?.id;
        let section = MemoryConfig::for_engine(config, &engine)?;
        let open =
            || AgentMemory::open(&section, Some(&home.memory_dir(agent)), agent.as_str(), None);
        let memory = section.enabled.then(|| known.unwrap_or_else(open));
        Ok(Self { memory, counter: config.section::<SystemRules>()?.counter })
    }

    /// Whether memory is disabled.
    pub(super) fn is_off(&self) -> bool {
        self.memory.is_none()
    }

    /// Archives every message of a session durably. Archived messages are not stored twice.
    pub(super) fn keep(&self, session: &str, files: &[PathBuf], now: Timestamp) -> Result<()> {
        let Some(memory) = &self.memory else { return Ok(()) };
        for file in files {
            let messages = Transcript::open(file)?.all_messages();
            memory.archive(session, self.counter, &messages, now)?;
        }
        Ok(())
    }

    pub(super) fn take_warnings(&self) -> Vec<String> {
        self.memory.as_ref().map(|memory| memory.memory.take_warnings()).unwrap_or_default()
    }
}

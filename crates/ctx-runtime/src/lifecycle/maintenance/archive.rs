//! Memory, as the place where what was said is found when its transcript is gone.

use std::path::PathBuf;

use ctx_core::{Counter, Result, Timestamp};
use ctx_engine_registry::{Config, SelectFor, selected_engine};
use ctx_layers::memory::Config as MemoryConfig;
use ctx_session::Transcript;
use ctx_session::key::FileId;
use ctx_session::paths::Home;

use crate::AgentMemory;

/// The memory of an agent, where it is switched on.
pub(crate) struct Archive {
    memory: Option<AgentMemory>,
    counter: Counter,
}

impl Archive {
    /// As the configuration says. `known` is the agent's memory, where it is open already.
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
        Ok(Self { memory, counter: Counter::for_profile(config.profile()) })
    }

    /// Whether there is none.
    pub(super) fn is_off(&self) -> bool {
        self.memory.is_none()
    }

    /// Archives every message of a session, durably. What is archived already stays once.
    pub(super) fn keep(&self, session: &str, files: &[PathBuf], now: Timestamp) -> Result<()> {
        let Some(memory) = &self.memory else { return Ok(()) };
        for file in files {
            let messages = Transcript::open(file)?.all_messages();
            memory.keep(session, self.counter, &messages, now)?;
        }
        Ok(())
    }

    pub(super) fn take_warnings(&self) -> Vec<String> {
        self.memory.as_ref().map(|memory| memory.memory.take_warnings()).unwrap_or_default()
    }
}

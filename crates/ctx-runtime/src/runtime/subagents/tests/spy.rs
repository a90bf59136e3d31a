//! An engine that records its notifications about subagents.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use ctx_core::{
    AssembleRequest, Assembled, CompactRequest, CompactResult, ContextEngine, EngineInfo, Error,
    ErrorKind, IngestRequest, IngestResult, Result, SubagentEnd, SubagentSpawn,
};
use ctx_engine_registry::{EngineRegistration, Slot};

/// All notifications, each with the key of its subagent.
static NOTIFICATIONS: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());

/// Returns the notifications about the subagents of an agent, in order.
pub(super) fn notifications(agent: &str) -> Vec<String> {
    let notifications = NOTIFICATIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let of = format!("agent:{agent}:");
    notifications
        .iter()
        .filter(|(key, _)| key.starts_with(&of))
        .map(|(_, words)| words.clone())
        .collect()
}

fn note(key: &str, words: String) {
    NOTIFICATIONS.lock().unwrap_or_else(PoisonError::into_inner).push((key.to_owned(), words));
}

struct Spy(EngineInfo);

#[async_trait]
impl ContextEngine for Spy {
    fn info(&self) -> &EngineInfo {
        &self.0
    }

    async fn ingest(&self, _: IngestRequest) -> Result<IngestResult> {
        Ok(IngestResult { ingested: true })
    }

    async fn assemble(&self, request: AssembleRequest) -> Result<Assembled> {
        Ok(Assembled { view: request.view, system_prompt_addition: None })
    }

    async fn compact(&self, _: CompactRequest) -> Result<CompactResult> {
        Ok(CompactResult::nothing("it is a spy"))
    }

    async fn prepare_subagent_spawn(&self, spawn: &SubagentSpawn) -> Result<()> {
        let ttl = spawn.ttl_ms.map(|ttl| format!(" for {ttl}")).unwrap_or_default();
        note(&spawn.child_session_key, format!("prepare{ttl}"));
        match spawn.child_session_key.starts_with("agent:refused:") {
            true => Err(Error::new(ErrorKind::Conflict, "no subagents today")),
            false => Ok(()),
        }
    }

    async fn rollback_subagent_spawn(&self, spawn: &SubagentSpawn) -> Result<()> {
        note(&spawn.child_session_key, "rollback".to_owned());
        Ok(())
    }

    async fn on_subagent_ended(&self, child: &str, reason: SubagentEnd) -> Result<()> {
        note(child, format!("ended {reason:?}"));
        match child.starts_with("agent:grumpy:") {
            true => Err(Error::new(ErrorKind::Upstream, "what do I care")),
            false => Ok(()),
        }
    }
}

ctx_engine_registry::inventory::submit! {
    EngineRegistration {
        slot: Slot::ContextEngine,
        id: "spy",
        source: env!("CARGO_PKG_NAME"),
        about: "records its notifications about subagents",
        build: |_| Ok(Arc::new(Spy(EngineInfo {
            id: "spy".into(),
            name: "Spy".into(),
            version: "1".into(),
            owns_compaction: false,
        }))),
    }
}

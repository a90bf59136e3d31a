//! The contract of context engines, which fill the slot `plugins.slots.contextEngine`.

use std::borrow::Cow;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{
    CompactRequest, CompactResult, ContextView, EngineHealth, EntryId, Message, Result, TurnContext,
};

/// The identity of an engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EngineInfo {
    /// The id that selects the engine in the config.
    pub id: Cow<'static, str>,
    /// The display name.
    pub name: Cow<'static, str>,
    /// The version.
    pub version: Cow<'static, str>,
    /// Whether the engine requests the compaction lease.
    pub owns_compaction: bool,
}

/// Announces a session that has a history.
#[derive(Clone, Debug)]
pub struct BootstrapRequest {
    /// The session.
    pub session_id: String,
    /// The path of its transcript, if it is a file.
    pub session_file: Option<String>,
}

/// The result of a bootstrap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BootstrapResult {
    /// Whether the engine imported the history.
    pub bootstrapped: bool,
    /// The number of imported messages.
    pub imported_messages: usize,
    /// The reason why not.
    pub reason: Option<String>,
}

/// Announces a message that was added to the session.
#[derive(Clone, Debug)]
pub struct IngestRequest {
    /// The session.
    pub session_id: String,
    /// The id of the stored entry.
    pub entry: EntryId,
    /// The message.
    pub message: std::sync::Arc<Message>,
    /// Whether it belongs to a heartbeat instead of a conversation.
    pub is_heartbeat: bool,
}

/// The result of ingesting a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IngestResult {
    /// Whether the engine stored the message, or a part of it; `false` is not a failure.
    pub ingested: bool,
}

/// A request to assemble the messages for the model.
#[derive(Debug)]
pub struct AssembleRequest {
    /// The session.
    pub session_id: String,
    /// The messages and the budget. The engine edits the view and returns it.
    pub view: ContextView,
    /// The turn.
    pub turn: TurnContext,
}

/// The answer of an engine to [`AssembleRequest`]. The host finishes the view in any case.
#[derive(Debug)]
pub struct Assembled {
    /// The edited view.
    pub view: ContextView,
    /// Text to append to the system prompt.
    pub system_prompt_addition: Option<String>,
}

impl Assembled {
    /// Returns the view, with the system prompt addition counted in its budget. The host reads the
    /// addition from [`ContextView::system_addition`].
    #[must_use]
    pub fn into_view(mut self) -> ContextView {
        self.view.set_system_addition(self.system_prompt_addition);
        self.view
    }
}

/// A subagent that is about to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubagentSpawn {
    /// The session that starts the subagent.
    pub parent_session_key: String,
    /// The session of the subagent.
    pub child_session_key: String,
    /// Its maximum lifetime in milliseconds.
    pub ttl_ms: Option<u64>,
}

/// The reason why a subagent ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SubagentEnd {
    /// Its session was deleted.
    Deleted,
    /// It completed.
    Completed,
    /// It ended without a result.
    Failed,
    /// It exceeded its lifetime.
    Swept,
    /// Its parent released it.
    Released,
}

/// A context engine. `info`, `ingest`, `assemble` and `compact` are required; the other methods do
/// nothing by default.
#[async_trait]
pub trait ContextEngine: Send + Sync {
    /// Returns the identity of the engine.
    fn info(&self) -> &EngineInfo;

    /// Processes a new message.
    async fn ingest(&self, request: IngestRequest) -> Result<IngestResult>;

    /// Edits the view so that it fits its budget.
    async fn assemble(&self, request: AssembleRequest) -> Result<Assembled>;

    /// Compacts the session permanently.
    async fn compact(&self, request: CompactRequest) -> Result<CompactResult>;

    /// Imports the history of an existing session.
    async fn bootstrap(&self, request: BootstrapRequest) -> Result<BootstrapResult> {
        let _ = request;
        Ok(BootstrapResult::default())
    }

    /// Whether it processes messages before they are assembled. A host need not pass them to an
    /// engine that does not.
    fn ingests(&self) -> bool {
        true
    }

    /// Processes several messages; by default one after another.
    async fn ingest_batch(&self, requests: Vec<IngestRequest>) -> Result<usize> {
        let mut ingested = 0;
        for request in requests {
            ingested += usize::from(self.ingest(request).await?.ingested);
        }
        Ok(ingested)
    }

    /// Reports that the messages of a turn are durably stored. `advancement_key` identifies the
    /// turn: a second call with the same key must change nothing.
    async fn commit_turn(&self, session_id: &str, advancement_key: &str) -> Result<()> {
        let _ = (session_id, advancement_key);
        Ok(())
    }

    /// Reports the end of a turn.
    async fn after_turn(&self, session_id: &str) -> Result<()> {
        let _ = session_id;
        Ok(())
    }

    /// Lets the engine run maintenance, after a turn.
    async fn maintain(&self, session_id: &str) -> Result<()> {
        let _ = session_id;
        Ok(())
    }

    /// Announces that a subagent is about to start.
    async fn prepare_subagent_spawn(&self, spawn: &SubagentSpawn) -> Result<()> {
        let _ = spawn;
        Ok(())
    }

    /// Reports that an announced subagent did not start.
    async fn rollback_subagent_spawn(&self, spawn: &SubagentSpawn) -> Result<()> {
        let _ = spawn;
        Ok(())
    }

    /// Reports that a subagent ended.
    async fn on_subagent_ended(&self, child_session_key: &str, reason: SubagentEnd) -> Result<()> {
        let _ = (child_session_key, reason);
        Ok(())
    }

    /// Returns the health. `None` for a built-in engine: it cannot fail independently of its host.
    fn health(&self) -> Option<EngineHealth> {
        None
    }

    /// Returns the warnings for the user, each of them once.
    fn take_warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Releases the engine's resources after its last use.
    async fn dispose(&self) -> Result<()> {
        Ok(())
    }
}

//! The engine contract: what fills the slot `plugins.slots.contextEngine`.

use std::borrow::Cow;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{
    ContextView, EngineHealth, EntryId, Message, Projection, Result, SummaryModels, Tokens,
    TurnContext,
};

/// Who an engine is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EngineInfo {
    /// The id the config selects it by.
    pub id: Cow<'static, str>,
    /// A name for people.
    pub name: Cow<'static, str>,
    /// Its version.
    pub version: Cow<'static, str>,
    /// Whether it asks for the lease on compaction.
    pub owns_compaction: bool,
}

/// The session came up and has a history.
#[derive(Clone, Debug)]
pub struct BootstrapRequest {
    /// The session.
    pub session_id: String,
    /// Its transcript, where it has a file.
    pub session_file: Option<String>,
}

/// What bootstrapping did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BootstrapResult {
    /// Whether the engine took the history in.
    pub bootstrapped: bool,
    /// How many messages it took in.
    pub imported_messages: usize,
    /// Why not.
    pub reason: Option<String>,
}

/// A message was added to the session.
#[derive(Clone, Debug)]
pub struct IngestRequest {
    /// The session.
    pub session_id: String,
    /// The entry it was stored as.
    pub entry: EntryId,
    /// The message.
    pub message: std::sync::Arc<Message>,
    /// Whether it belongs to a heartbeat rather than to a conversation.
    pub is_heartbeat: bool,
}

/// What ingesting did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IngestResult {
    /// Whether the engine keeps anything of it; `false` is not a failure.
    pub ingested: bool,
}

/// A request is about to be made. The view holds the session's messages and the budget.
#[derive(Debug)]
pub struct AssembleRequest {
    /// The session.
    pub session_id: String,
    /// The messages and the budget. The engine edits it and hands it back.
    pub view: ContextView,
    /// The turn.
    pub turn: TurnContext,
}

/// What an engine answers to [`AssembleRequest`]. The host finishes the view, whatever is in it.
#[derive(Debug)]
pub struct Assembled {
    /// The edited view.
    pub view: ContextView,
    /// Text to be added to the system prompt.
    pub system_prompt_addition: Option<String>,
}

impl Assembled {
    /// The view, with the addition to the system prompt counted in its budget. The host finds it in
    /// [`ContextView::system_addition`].
    #[must_use]
    pub fn into_view(mut self) -> ContextView {
        self.view.set_system_addition(self.system_prompt_addition);
        self.view
    }
}

/// Why a compaction runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CompactionTrigger {
    /// The provider refused the prompt as too long.
    Overflow,
    /// The user asked for it.
    Manual,
    /// The session passed the threshold.
    Threshold,
}

/// What a summary does with identifiers: paths, ids, hashes, URLs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum IdentifierPolicy {
    /// They stay exactly as they are, so that the summary can be traced back.
    #[default]
    #[serde(alias = "strict")]
    Preserve,
    /// They are replaced by neutral names: shorter, but nothing can be traced back.
    Anonymize,
    /// Nothing is asked of the model.
    Off,
    /// The instructions given say what to do.
    Custom,
}

/// How a summary is to be written, where the caller has wishes of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SummaryInstructions {
    /// What to do with identifiers.
    pub identifier_policy: Option<IdentifierPolicy>,
    /// The instructions of [`IdentifierPolicy::Custom`].
    pub identifier_instructions: Option<String>,
}

/// The session is to be compacted.
#[derive(Debug)]
pub struct CompactRequest {
    /// The session.
    pub session_id: String,
    /// Its messages and the budget.
    pub view: ContextView,
    /// The turn.
    pub turn: TurnContext,
    /// What the session may measure afterwards; the engine's own target when absent.
    pub token_budget: Option<Tokens>,
    /// Compact even if the session is small.
    pub force: bool,
    /// Why.
    pub trigger: CompactionTrigger,
    /// Which attempt this is at getting one request through, from 1. Later ones cut deeper.
    pub attempt: u32,
    /// How many attempts there will be at most.
    pub max_attempts: u32,
    /// Other models than the engine's own, for this compaction.
    pub models: Option<SummaryModels>,
    /// What the user wants the summary to dwell on. Untrusted.
    pub custom_instructions: Option<String>,
    /// How the summary is to be written.
    pub summary_instructions: SummaryInstructions,
}

impl CompactRequest {
    /// A request with the engine's own target, models and instructions, the first attempt of
    /// three.
    #[must_use]
    pub fn new(
        session_id: impl Into<String>,
        view: ContextView,
        turn: TurnContext,
        trigger: CompactionTrigger,
    ) -> Self {
        Self {
            session_id: session_id.into(),
            view,
            turn,
            token_budget: None,
            force: false,
            trigger,
            attempt: 1,
            max_attempts: 3,
            models: None,
            custom_instructions: None,
            summary_instructions: SummaryInstructions::default(),
        }
    }
}

/// What a compaction achieved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Compacted {
    /// The summary that stands for the history; empty when history was dropped without one.
    pub summary: String,
    /// The first entry kept as it is.
    pub first_kept_entry_id: EntryId,
    /// Tokens before.
    pub tokens_before: Tokens,
    /// Tokens after.
    pub tokens_after: Option<Tokens>,
    /// What the method has to say about itself.
    pub details: Option<serde_json::Value>,
    /// Messages before the first kept entry that stay all the same, between the summary and it: the
    /// newest user message, and what is pinned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub staying: Vec<EntryId>,
    /// Shorter forms of messages that are kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub projections: Vec<Projection>,
}

/// The outcome of [`ContextEngine::compact`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactResult {
    /// Whether all went well, also when nothing had to be done.
    pub ok: bool,
    /// Whether anything was compacted.
    pub compacted: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What was achieved.
    pub result: Option<Compacted>,
}

impl CompactResult {
    /// Nothing was done, and that is fine.
    pub fn nothing(reason: impl Into<String>) -> Self {
        Self { ok: true, compacted: false, reason: Some(reason.into()), result: None }
    }
}

/// A subagent is about to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubagentSpawn {
    /// The session that starts it.
    pub parent_session_key: String,
    /// The session it gets.
    pub child_session_key: String,
    /// How long it may live, in milliseconds.
    pub ttl_ms: Option<u64>,
}

/// Why a subagent ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SubagentEnd {
    /// Its session was deleted.
    Deleted,
    /// It finished.
    Completed,
    /// It ended without a result.
    Failed,
    /// It outlived its time.
    Swept,
    /// Its parent let it go.
    Released,
}

/// A context engine. Required: `info`, `ingest`, `assemble`, `compact`; the rest has defaults that
/// do nothing.
#[async_trait]
pub trait ContextEngine: Send + Sync {
    /// Who it is.
    fn info(&self) -> &EngineInfo;

    /// Takes note of a new message.
    async fn ingest(&self, request: IngestRequest) -> Result<IngestResult>;

    /// Makes the view fit its budget as the engine sees fit.
    async fn assemble(&self, request: AssembleRequest) -> Result<Assembled>;

    /// Makes the session smaller for good.
    async fn compact(&self, request: CompactRequest) -> Result<CompactResult>;

    /// Takes in the history of a session that existed before.
    async fn bootstrap(&self, request: BootstrapRequest) -> Result<BootstrapResult> {
        let _ = request;
        Ok(BootstrapResult::default())
    }

    /// Takes note of several messages; one by one unless the engine knows better.
    async fn ingest_batch(&self, requests: Vec<IngestRequest>) -> Result<usize> {
        let mut ingested = 0;
        for request in requests {
            ingested += usize::from(self.ingest(request).await?.ingested);
        }
        Ok(ingested)
    }

    /// The turn's messages are stored for good. `advancement_key` names the turn: a second call
    /// with the same key must change nothing.
    async fn commit_turn(&self, session_id: &str, advancement_key: &str) -> Result<()> {
        let _ = (session_id, advancement_key);
        Ok(())
    }

    /// The turn is over.
    async fn after_turn(&self, session_id: &str) -> Result<()> {
        let _ = session_id;
        Ok(())
    }

    /// There is time for housekeeping.
    async fn maintain(&self, session_id: &str) -> Result<()> {
        let _ = session_id;
        Ok(())
    }

    /// A subagent is about to start.
    async fn prepare_subagent_spawn(&self, spawn: &SubagentSpawn) -> Result<()> {
        let _ = spawn;
        Ok(())
    }

    /// The subagent did not start after all.
    async fn rollback_subagent_spawn(&self, spawn: &SubagentSpawn) -> Result<()> {
        let _ = spawn;
        Ok(())
    }

    /// A subagent ended.
    async fn on_subagent_ended(&self, child_session_key: &str, reason: SubagentEnd) -> Result<()> {
        let _ = (child_session_key, reason);
        Ok(())
    }

    /// How it fares. `None` for an engine that is built in: it cannot fail apart from its host.
    fn health(&self) -> Option<EngineHealth> {
        None
    }

    /// What a person should be told of it, each thing once.
    fn take_warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// The engine is not needed any more.
    async fn dispose(&self) -> Result<()> {
        Ok(())
    }
}

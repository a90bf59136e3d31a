//! The request for a subagent, and its outcome.

use std::sync::Arc;
use std::time::Duration;

use ctx_core::{ChatModel, Tokens};
use ctx_session::key::SessionKey;

use crate::host::TurnOutcome;

/// What a subagent knows when it starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ContextMode {
    /// Its task.
    #[default]
    Isolated,
    /// Its task, and its parent's current context.
    Forked,
}

/// A task for a subagent.
///
/// # Example
///
/// ```
/// use std::time::Duration;
///
/// use ctx_core::Tokens;
/// use ctx_runtime::SpawnRequest;
///
/// let request = SpawnRequest::isolated("Count the files in src.")
///     .with_window(Tokens(32_000))
///     .with_timeout(Duration::from_secs(600));
/// # let _ = request;
/// ```
#[derive(Clone)]
#[must_use]
pub struct SpawnRequest {
    pub(super) task: String,
    pub(super) mode: ContextMode,
    pub(super) window: Option<Tokens>,
    pub(super) model: Option<Arc<dyn ChatModel>>,
    pub(super) system: Option<String>,
    pub(super) timeout: Option<Duration>,
}

impl SpawnRequest {
    /// Creates a task for a subagent that knows nothing else.
    pub fn isolated(task: impl Into<String>) -> Self {
        Self::new(task, ContextMode::Isolated)
    }

    /// Creates a task for a subagent that knows what its parent knows.
    pub fn forked(task: impl Into<String>) -> Self {
        Self::new(task, ContextMode::Forked)
    }

    /// Creates a task.
    pub fn new(task: impl Into<String>, mode: ContextMode) -> Self {
        Self { task: task.into(), mode, window: None, model: None, system: None, timeout: None }
    }

    /// Sets its own window. Default: the model's, as for its parent.
    pub fn with_window(self, tokens: Tokens) -> Self {
        Self { window: Some(tokens), ..self }
    }

    /// Sets the primary model, tried before the parent's. Default: only the parent's models.
    pub fn with_model(self, model: Arc<dyn ChatModel>) -> Self {
        Self { model: Some(model), ..self }
    }

    /// Sets its own system prompt. Default: its parent's.
    pub fn with_system_prompt(self, text: impl Into<String>) -> Self {
        Self { system: Some(text.into()), ..self }
    }

    /// Sets its run time limit. Default: `agents.defaults.subagents.runTimeoutSeconds`.
    pub fn with_timeout(self, longest: Duration) -> Self {
        Self { timeout: Some(longest), ..self }
    }
}

/// The outcome of a subagent.
#[derive(Clone, Debug)]
pub struct SubagentOutcome {
    /// Its session.
    pub key: SessionKey,
    /// Its answer, usage and notices.
    pub turn: TurnOutcome,
}

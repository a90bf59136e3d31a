//! Layers, the components of an engine, and their arguments.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::{
    CompactResult, CompactionTrigger, ContextView, IdSource, Result, SequentialIds,
    SummaryInstructions, SummaryModels, Timestamp, Tokens,
};

/// The turn in which a layer runs.
#[derive(Clone)]
pub struct TurnContext {
    /// The time of the request.
    pub now: Timestamp,
    /// When this session's previous request was sent, and so when the provider's cache was last
    /// used. `None` before the first.
    pub last_request: Option<Timestamp>,
    /// The source of new ids.
    pub ids: Arc<dyn IdSource>,
    /// Whether the turn may wait for a model that writes a summary. If not, the summary is
    /// extractive.
    pub waits_for_models: bool,
}

impl TurnContext {
    /// Creates the first turn of a session at the given time, with sequential ids.
    #[must_use]
    pub fn at(now: Timestamp) -> Self {
        let ids = Arc::new(SequentialIds::default());
        Self { now, last_request: None, ids, waits_for_models: true }
    }
}

crate::partial_debug!(TurnContext, it, now = it.now, last_request = it.last_request);

/// A request to compact a session.
#[derive(Debug)]
pub struct CompactRequest {
    /// The session.
    pub session_id: String,
    /// Its messages and the budget.
    pub view: ContextView,
    /// The turn.
    pub turn: TurnContext,
    /// The maximum size of the session afterwards; default: the engine's own target.
    pub token_budget: Option<Tokens>,
    /// Whether to compact even a small session.
    pub force: bool,
    /// The reason for the compaction.
    pub trigger: CompactionTrigger,
    /// The number of this attempt to make one request fit, from 1. Later attempts cut more.
    pub attempt: u32,
    /// The maximum number of attempts.
    pub max_attempts: u32,
    /// Models that replace the engine's own for this compaction.
    pub models: Option<SummaryModels>,
    /// What the user wants the summary to focus on. Untrusted input.
    pub custom_instructions: Option<String>,
    /// Instructions for the summary.
    pub summary_instructions: SummaryInstructions,
}

impl CompactRequest {
    /// Creates a request with the engine's own target, models and instructions, as the first of
    /// three attempts.
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

/// The result of [`Layer::prepare`], passed to [`Layer::apply`].
pub type Prepared = Box<dyn Any + Send>;

/// Work to await before a layer is applied. It owns its data: the future cannot borrow a view, so
/// no view is held across an await.
pub type Pending = Pin<Box<dyn Future<Output = Result<Prepared>> + Send>>;

/// A compaction in progress. Like [`Pending`], it owns its data.
pub type PendingCompaction = Pin<Box<dyn Future<Output = Result<CompactResult>> + Send>>;

/// One layer of an engine.
///
/// # Notes
///
/// `apply` is synchronous and has no side effects except its edits: the same view, turn and
/// prepared value give the same edits. A layer must not assume that it runs alone, first or last.
///
/// # Example
///
/// ```
/// use ctx_core::{ContextView, Layer, Prepared, Result, Role, TurnContext};
///
/// /// Keeps bash runs away from the model.
/// struct NoBash;
///
/// impl Layer for NoBash {
///     fn id(&self) -> &'static str {
///         "no-bash"
///     }
///     fn apply(&self, view: &mut ContextView, _: Option<Prepared>, _: &TurnContext) -> Result<()> {
///         for at in 0..view.len() {
///             if view.node(at).role() == &Role::BashExecution {
///                 view.drop(at, self.id(), "not for the model");
///             }
///         }
///         Ok(())
///     }
/// }
/// ```
pub trait Layer: Send + Sync {
    /// Returns the layer's name, as the manifest shows it.
    fn id(&self) -> &'static str;

    /// Inspects the view and returns work to await (a search, a model call), or `None`.
    fn prepare(&self, view: &ContextView, turn: &TurnContext) -> Option<Pending> {
        let _ = (view, turn);
        None
    }

    /// Edits the view.
    fn apply(
        &self,
        view: &mut ContextView,
        prepared: Option<Prepared>,
        turn: &TurnContext,
    ) -> Result<()>;

    /// Compacts the session permanently. Returns `None` if the layer does not compact.
    fn compact(&self, request: &CompactRequest) -> Option<PendingCompaction> {
        let _ = request;
        None
    }

    /// Returns the warnings for the user, each of them once.
    fn take_warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

//! The guard as a layer.

use std::sync::Arc;

use ctx_core::{BlobStore, ContextView, Layer, Prepared, Result, Services, TurnContext};

use crate::single::{CallStatus, bound, is_surely_small};
use crate::{Config, ResultLimits, aggregate, offload, replacement};

/// Bounds tool results.
///
/// # What
///
/// 1. Each result that has not been sent yet is measured. One over the cap for a single result is
///    truncated to it: to its beginning or, where its end matters (an error, the end of JSON, a
///    summary), to both ends. A past result that takes more than `preemptiveShare` of the window,
///    as in a transcript recorded by another system, is replaced by a placeholder.
/// 2. With [`Offload`](crate::Offload) on, results that have left the newest are moved to
///    files.
/// 3. When all results together exceed their cap, the oldest are elided until three quarters of it
///    are left, or less, so that three more results of the usual size fit: each elision breaks the
///    provider's cached prefix.
///
/// # Notes
///
/// A truncated result stays truncated, because the view keeps its edits. A second run changes
/// nothing.
///
/// Results of the tool call in progress are truncated at any size, but neither replaced nor elided
/// to free budget for others: a model that does not see its last result calls the tool again
/// forever.
///
/// The cost of a turn is proportional to its new messages; all results are visited only when their
/// sum exceeds its cap.
///
/// # Default
///
/// See [`Config`].
///
/// # Example
///
/// ```
/// use std::sync::Arc;
/// use ctx_core::{
///     Block, ContextView, Counter, Entry, Layer, Message, RawJson, Role, Timestamp,
///     TokenLedger, Tokens, ToolCall, TurnContext,
/// };
/// use ctx_tool_guard::{CONTEXT_LIMIT_TRUNCATION_NOTICE, Config, ToolGuard};
///
/// let ledger = TokenLedger::new(Counter::default(), Tokens(32_000), Tokens(8_000));
/// let mut view = ContextView::new(ledger);
/// let call = ToolCall::new("call-1", "read", RawJson::from_text("{}"));
/// view.append(Arc::new(Entry::in_memory("1", Message::text(Role::User, "read it"))))?;
/// let call = Message::new(Role::Assistant, vec![Block::ToolCall(call)]);
/// view.append(Arc::new(Entry::in_memory("2", call)))?;
/// let output = Message::tool_result("call-1", "a long line\n".repeat(4_000));
/// view.append(Arc::new(Entry::in_memory("3", output)))?;
///
/// let turn = TurnContext::at(Timestamp(0));
/// ToolGuard::new(Config::default()).apply(&mut view, None, &turn)?;
/// let sent = view.messages()?;
/// let text = sent[2].tool_results().next().map(|r| r.plain_text().into_owned()).unwrap_or_default();
/// assert!(text.len() <= 16_000 && text.ends_with(CONTEXT_LIMIT_TRUNCATION_NOTICE));
/// # Ok::<(), ctx_core::Error>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct ToolGuard {
    config: Config,
    blobs: Option<Arc<dyn BlobStore>>,
}

ctx_core::partial_debug!(ToolGuard, it, config = it.config, blobs = it.blobs.is_some());

impl ToolGuard {
    /// The layer's name.
    pub const ID: &'static str = replacement::ID;

    /// Creates a guard with the given settings and no blob store.
    pub fn new(config: Config) -> Self {
        Self { config, blobs: None }
    }

    /// Sets the blob store for whole texts.
    pub fn with_blobs(mut self, blobs: Arc<dyn BlobStore>) -> Self {
        self.blobs = Some(blobs);
        self
    }

    /// Takes the blob store from the host's services.
    pub fn with_services(mut self, services: &Services) -> Self {
        self.blobs.clone_from(&services.blobs);
        self
    }

    /// Returns the settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn blobs(&self) -> Option<&dyn BlobStore> {
        self.blobs.as_deref()
    }

    fn bound_fresh(&self, view: &mut ContextView, limits: &ResultLimits) -> Result<()> {
        let counter = *view.ledger().counter();
        for at in view.fresh_from()..view.len() {
            let node = view.node(at);
            if node.results().is_empty()
                || !node.is_live()
                || is_surely_small(node.tokens(), limits, &counter)
            {
                continue;
            }
            let status =
                if view.is_protected(at) { CallStatus::InProgress } else { CallStatus::Past };
            // The transcript keeps the whole text, so nothing is written to the blob store here.
            replacement::rewrite(view, at, |result| {
                bound(result, limits, &counter, status, |_| None)
            })?;
        }
        Ok(())
    }
}

impl Layer for ToolGuard {
    fn id(&self) -> &'static str {
        Self::ID
    }

    fn apply(&self, view: &mut ContextView, _: Option<Prepared>, turn: &TurnContext) -> Result<()> {
        let limits = ResultLimits::new(&self.config, view.ledger().window());
        self.bound_fresh(view, &limits)?;
        if self.config.offload.enabled {
            offload::offload(view, &self.config.offload, self.blobs(), turn)?;
        }
        if let Some(cap) = limits.aggregate {
            aggregate::elide(view, cap)?;
        }
        Ok(())
    }
}

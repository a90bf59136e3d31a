//! The guard as a layer.

use std::borrow::Cow;
use std::sync::Arc;

use ctx_core::{
    BlobStore, Block, ContextView, Layer, Message, Prepared, Result, Services, ToolResult,
    TurnContext,
};

use crate::single::{Bounded, Standing, bound, is_surely_small};
use crate::{Config, Limits, aggregate, offload};

/// Bounds tool results.
///
/// # What
///
/// 1. Each result that has not been sent yet is measured. One over the cap for a single result is
///    cut to it, to its beginning or, where its end matters (an error, the close of JSON, a summing
///    up), to both ends. One of the past that takes more than `preemptiveShare` of the window, as it
///    is met in a transcript that grew elsewhere, is replaced by a placeholder.
/// 2. With [`Offload`](crate::Offload) on, results that are no longer among the newest are moved to
///    files.
/// 3. When all results together exceed their cap, the oldest are elided until three quarters of it
///    are left, or less, so that three more results of the usual size fit: each time the provider's
///    cached prefix is broken.
///
/// # Notes
///
/// What was cut stays cut: the view is sticky. A second run changes nothing.
///
/// Results of the tool call in progress are cut, whatever their size, but neither replaced nor
/// elided for the sake of others: a model that does not see its last result asks for it for ever.
///
/// A turn costs what is new in it; all results are walked only when their sum is over its cap.
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
///     Block, ContextView, Counter, Entry, Layer, Message, RawJson, Role, SequentialIds, Timestamp,
///     TokenLedger, Tokens, ToolCall, TurnContext,
/// };
/// use ctx_tool_guard::{CONTEXT_LIMIT_TRUNCATION_NOTICE, Config, ToolGuard};
///
/// let ledger = TokenLedger::new(Counter::default(), Tokens(32_000), Tokens(8_000));
/// let mut view = ContextView::new(ledger);
/// let call = ToolCall {
///     id: "call-1".into(),
///     name: "read".into(),
///     arguments: RawJson::from_text("{}"),
///     spelling: Default::default(),
/// };
/// view.append(Arc::new(Entry::held("1", Message::text(Role::User, "read it"))))?;
/// let call = Message::new(Role::Assistant, vec![Block::ToolCall(call)]);
/// view.append(Arc::new(Entry::held("2", call)))?;
/// let output = Message::tool_result("call-1", "a long line\n".repeat(4_000));
/// view.append(Arc::new(Entry::held("3", output)))?;
///
/// let turn = TurnContext {
///     now: Timestamp(0),
///     last_request: None,
///     ids: Arc::new(SequentialIds::default()),
///     profile: Default::default(),
/// };
/// ToolGuard::new(Config::default()).apply(&mut view, None, &turn)?;
/// let sent = view.messages()?;
/// let text = sent[2].tool_results().next().map(|r| r.plain_text().into_owned()).unwrap_or_default();
/// assert!(text.len() <= 16_000 && text.ends_with(CONTEXT_LIMIT_TRUNCATION_NOTICE));
/// # Ok::<(), ctx_core::Error>(())
/// ```
#[derive(Clone)]
pub struct ToolGuard {
    config: Config,
    blobs: Option<Arc<dyn BlobStore>>,
}

impl std::fmt::Debug for ToolGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolGuard")
            .field("config", &self.config)
            .field("blobs", &self.blobs.is_some())
            .finish()
    }
}

impl ToolGuard {
    /// The layer's name.
    pub const ID: &'static str = "tool-guard";

    /// A guard with the given settings and no place for whole texts.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { config, blobs: None }
    }

    /// Sets where whole texts go.
    #[must_use]
    pub fn with_blobs(mut self, blobs: Arc<dyn BlobStore>) -> Self {
        self.blobs = Some(blobs);
        self
    }

    /// Takes what it needs from the host's services.
    #[must_use]
    pub fn with_services(mut self, services: &Services) -> Self {
        self.blobs.clone_from(&services.blobs);
        self
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn blobs(&self) -> Option<&dyn BlobStore> {
        self.blobs.as_deref()
    }

    fn bound_fresh(&self, view: &mut ContextView, limits: &Limits) -> Result<()> {
        let counter = *view.ledger().counter();
        for at in view.fresh_from()..view.len() {
            let node = view.node(at);
            if node.results().is_empty()
                || !node.is_live()
                || is_surely_small(node.tokens(), limits, &counter)
            {
                continue;
            }
            let standing =
                if view.is_protected(at) { Standing::InProgress } else { Standing::Past };
            // The transcript keeps the whole text, so nothing is put away here.
            rewrite(view, at, |result| bound(result, limits, &counter, standing, |_| None))?;
        }
        Ok(())
    }
}

impl Layer for ToolGuard {
    fn id(&self) -> &'static str {
        Self::ID
    }

    fn apply(&self, view: &mut ContextView, _: Option<Prepared>, turn: &TurnContext) -> Result<()> {
        let limits = Limits::new(&self.config, view.ledger().window());
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

/// Shows other content for those results of a message for which `change` gives some.
pub(crate) fn rewrite(
    view: &mut ContextView,
    at: usize,
    change: impl FnMut(&ToolResult) -> Option<Bounded>,
) -> Result<()> {
    let message = view.node(at).message()?;
    match rewritten(&message, change) {
        Some((form, reason)) => view.replace(at, form, ToolGuard::ID, reason),
        None => Ok(()),
    }
}

/// The message with the content of its results changed, and the first reason; `None` where nothing
/// changes.
pub(crate) fn rewritten(
    message: &Message,
    mut change: impl FnMut(&ToolResult) -> Option<Bounded>,
) -> Option<(Message, Cow<'static, str>)> {
    let mut changes: Vec<Option<Bounded>> = message.tool_results().map(&mut change).collect();
    let reason = changes.iter().flatten().next()?.reason.clone();
    let mut changes = changes.drain(..);
    let mut form = message.clone();
    for block in &mut form.blocks {
        if let Block::ToolResult(result) = block
            && let Some(bounded) = changes.next().flatten()
        {
            result.content = bounded.content;
        }
    }
    Some((form, reason))
}

//! Replaces tool results in a view.

use std::borrow::Cow;

use ctx_core::{Block, ContextView, Message, Result, ToolResult};

/// The layer's name.
pub(crate) const ID: &str = "tool-guard";

/// The new content of a result, and why it was replaced.
pub(crate) struct Replacement {
    pub(crate) content: Vec<Block>,
    pub(crate) reason: Cow<'static, str>,
}

/// Sets new content for the results of a message that `change` replaces.
pub(crate) fn rewrite(
    view: &mut ContextView,
    at: usize,
    change: impl FnMut(&ToolResult) -> Option<Replacement>,
) -> Result<()> {
    match rewritten(&*view.node(at).message()?, change) {
        Some((message, reason)) => view.replace(at, message, ID, reason),
        None => Ok(()),
    }
}

/// Returns the message with the changed results, and the first reason; `None` if nothing changes.
pub(crate) fn rewritten(
    message: &Message,
    mut change: impl FnMut(&ToolResult) -> Option<Replacement>,
) -> Option<(Message, Cow<'static, str>)> {
    let mut first_reason = None;
    let message = message.with_results(|_, result| {
        let Replacement { content, reason } = change(result)?;
        first_reason.get_or_insert(reason);
        Some(content)
    });
    message.zip(first_reason)
}

//! Which results are stale.

use std::collections::HashMap;

use ctx_core::{Block, CallId, ContextView, Message, Node, Result, Role, ToolResult};

use crate::tools::ToolFilter;

/// A message with stale results that may be pruned.
#[derive(Debug)]
pub(crate) struct PrunableMessage {
    /// The message's position.
    pub(crate) at: usize,
    /// For each of its results, whether it may be pruned; `None` if all may.
    admitted: Option<Vec<bool>>,
}

impl PrunableMessage {
    /// Whether its `index`-th result may be pruned.
    fn admits(&self, index: usize) -> bool {
        self.admitted.as_ref().is_none_or(|a| a.get(index).copied().unwrap_or(false))
    }

    /// Returns its results that may be pruned. `message` is that message.
    pub(crate) fn admitted<'a>(
        &'a self,
        message: &'a Message,
    ) -> impl Iterator<Item = &'a ToolResult> {
        let results = message.tool_results().enumerate();
        results.filter(|(index, _)| self.admits(*index)).map(|(_, result)| result)
    }

    /// Returns the message with new content for the results that may be pruned and that `change`
    /// replaces; `None` if it replaces none.
    pub(crate) fn rewritten(
        &self,
        message: &Message,
        mut change: impl FnMut(&ToolResult) -> Option<Vec<Block>>,
    ) -> Option<Message> {
        message.with_results(|index, result| self.admits(index).then(|| change(result)).flatten())
    }
}

/// Returns the end of the prunable messages: the position of the `keep`-th last assistant message,
/// or `None` if there are fewer.
pub(crate) fn before_last_assistants(view: &ContextView, keep: u32) -> Option<usize> {
    nth_last(view, keep, |view, at| view.node(at).role() == &Role::Assistant)
}

/// Returns the position of the `turns`-th last user message, or `None` if there are fewer.
pub(crate) fn before_last_turns(view: &ContextView, turns: u32) -> Option<usize> {
    nth_last(view, turns, |view, at| view.node(at).is_user())
}

fn nth_last(view: &ContextView, n: u32, is: impl Fn(&ContextView, usize) -> bool) -> Option<usize> {
    let Some(skip) = n.checked_sub(1) else { return Some(view.len()) };
    (0..view.len())
        .rev()
        .filter(|&at| view.node(at).is_live() && is(view, at))
        .nth(usize::try_from(skip).ok()?)
}

/// Returns all messages before `end` that `is_relevant` accepts and whose results may be pruned,
/// oldest first. Messages before the first user message are the session's setup and are never
/// pruned.
///
/// `is_relevant` gets a message that is not read yet, so that a turn reads no more messages than it
/// may change.
pub(crate) fn prunable_messages(
    view: &ContextView,
    end: usize,
    filter: &ToolFilter,
    is_relevant: impl Fn(&Node) -> bool,
) -> Result<Vec<PrunableMessage>> {
    let start = view.nodes().iter().position(|n| n.is_live() && n.is_user()).unwrap_or(end);
    let mut callers = Callers { view, end, places: None };
    let mut found = Vec::new();
    for at in start..end.min(view.len()) {
        let node = view.node(at);
        if !node.is_live()
            || node.results().is_empty()
            || view.is_protected(at)
            || !is_relevant(node)
        {
            continue;
        }
        if filter.admits_all() {
            found.push(PrunableMessage { at, admitted: None });
            continue;
        }
        let mut admitted = Vec::with_capacity(node.results().len());
        for result in node.message()?.tool_results() {
            let admits = match result.name.as_deref() {
                Some(name) => filter.admits(Some(name)),
                None => filter.admits(callers.tool(&result.call_id)?.as_deref()),
            };
            admitted.push(admits);
        }
        if admitted.contains(&true) {
            found.push(PrunableMessage { at, admitted: Some(admitted) });
        }
    }
    Ok(found)
}

/// Finds the tool of a call, for results that do not name it.
struct Callers<'v> {
    view: &'v ContextView,
    end: usize,
    /// The position of each call's message; built on first use.
    places: Option<HashMap<&'v CallId, usize>>,
}

impl<'v> Callers<'v> {
    /// Returns the tool that a call runs, if the call is found.
    fn tool(&mut self, id: &CallId) -> Result<Option<String>> {
        let (view, end) = (self.view, self.end);
        let places = self.places.get_or_insert_with(|| {
            let live = view.nodes().iter().take(end).enumerate().filter(|(_, n)| n.is_live());
            live.flat_map(|(at, n)| n.outline.calls.iter().map(move |id| (id, at))).collect()
        });
        let Some(&at) = places.get(id) else { return Ok(None) };
        let message = view.node(at).message()?;
        Ok(message.tool_calls().find(|c| c.id == *id).map(|c| c.name.clone()))
    }
}

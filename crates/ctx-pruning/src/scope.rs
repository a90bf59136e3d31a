//! Which results are stale.

use std::collections::HashMap;

use ctx_core::{Block, CallId, ContextView, Node, Result, Role, ToolResult};

use crate::tools::ToolFilter;

/// A message with stale results that may be pruned.
#[derive(Debug)]
pub(crate) struct Candidate {
    /// Its position.
    pub(crate) at: usize,
    /// Which of its results may be pruned; `None` for all.
    admitted: Option<Vec<bool>>,
}

impl Candidate {
    /// Whether its result number `index` may be pruned.
    pub(crate) fn admits(&self, index: usize) -> bool {
        self.admitted.as_ref().is_none_or(|a| a.get(index).copied().unwrap_or(false))
    }
}

/// The end of what may be pruned: the position of the `keep`-th last assistant message, or `None`
/// where there are fewer.
pub(crate) fn before_last_assistants(view: &ContextView, keep: u32) -> Option<usize> {
    nth_last(view, keep, |view, at| view.node(at).role() == &Role::Assistant)
}

/// The position of the `turns`-th last user message, or `None` where there are fewer.
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

/// All messages before `end` whose results may be pruned and that `matter`, oldest first. What comes
/// before the first user message is what the session was set up with, and is left alone.
///
/// `matter` goes by what is known of a message without reading it, so that a turn reads no more than
/// it may change.
pub(crate) fn candidates(
    view: &ContextView,
    end: usize,
    filter: &ToolFilter,
    matter: impl Fn(&Node) -> bool,
) -> Result<Vec<Candidate>> {
    let start = view.nodes().iter().position(|n| n.is_live() && n.is_user()).unwrap_or(end);
    let mut callers = Callers { view, end, places: None };
    let mut found = Vec::new();
    for at in start..end.min(view.len()) {
        let node = view.node(at);
        if !node.is_live() || node.results().is_empty() || view.is_protected(at) || !matter(node) {
            continue;
        }
        if filter.admits_all() {
            found.push(Candidate { at, admitted: None });
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
            found.push(Candidate { at, admitted: Some(admitted) });
        }
    }
    Ok(found)
}

/// Who made a call, for results that do not name their tool.
struct Callers<'v> {
    view: &'v ContextView,
    end: usize,
    /// Call to the position of the message that makes it; made when it is first needed.
    places: Option<HashMap<&'v CallId, usize>>,
}

impl<'v> Callers<'v> {
    /// The tool that a call runs, where the call is there.
    fn tool(&mut self, id: &CallId) -> Result<Option<String>> {
        let (view, end) = (self.view, self.end);
        let places = self.places.get_or_insert_with(|| {
            let live = view.nodes().iter().take(end).enumerate().filter(|(_, n)| n.is_live());
            live.flat_map(|(at, n)| n.calls().iter().map(move |id| (id, at))).collect()
        });
        let Some(&at) = places.get(id) else { return Ok(None) };
        let message = view.node(at).message()?;
        Ok(message.tool_calls().find(|c| c.id == *id).map(|c| c.name.clone()))
    }
}

/// The results of a candidate that may be pruned.
pub(crate) fn admitted_results<'a>(
    candidate: &'a Candidate,
    blocks: &'a [Block],
) -> impl Iterator<Item = &'a ToolResult> {
    let results = blocks.iter().filter_map(|b| match b {
        Block::ToolResult(result) => Some(result),
        _ => None,
    });
    results.enumerate().filter(|(index, _)| candidate.admits(*index)).map(|(_, result)| result)
}

//! Which results are stale.

use std::collections::HashMap;

use ctx_core::{Block, CallId, ContextView, Result, Role, ToolResult};

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

/// All messages before `end` whose results may be pruned, oldest first. What comes before the first
/// user message is what the session was set up with, and is left alone.
pub(crate) fn candidates(
    view: &ContextView,
    end: usize,
    filter: &ToolFilter,
) -> Result<Vec<Candidate>> {
    let start = view.nodes().iter().position(|n| n.is_live() && n.is_user()).unwrap_or(end);
    let mut names: HashMap<CallId, String> = HashMap::new();
    let mut found = Vec::new();
    for at in 0..end.min(view.len()) {
        let node = view.node(at);
        if !node.is_live() {
            continue;
        }
        if !filter.admits_all() && !node.calls().is_empty() {
            let message = node.message()?;
            names.extend(message.tool_calls().map(|c| (c.id.clone(), c.name.clone())));
        }
        if at < start || node.results().is_empty() || view.is_protected(at) {
            continue;
        }
        if filter.admits_all() {
            found.push(Candidate { at, admitted: None });
            continue;
        }
        let admits = |result: &ToolResult| {
            let called = names.get(&result.call_id).map(String::as_str);
            filter.admits(result.name.as_deref().or(called))
        };
        let admitted: Vec<bool> = node.message()?.tool_results().map(admits).collect();
        if admitted.contains(&true) {
            found.push(Candidate { at, admitted: Some(admitted) });
        }
    }
    Ok(found)
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

//! Properties of every answer, whatever the engine.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use ctx_core::{ContextView, EntryId, Message, NodeState, check_pairs};

use super::stop::{Stop, ensure};

/// Returns the entries of the request, in order.
pub(super) fn live(view: &ContextView) -> Vec<EntryId> {
    let live = view.nodes().iter().filter(|node| node.is_live());
    live.map(|node| node.entry().id().clone()).collect()
}

/// Returns the messages of the request.
pub(super) fn messages(view: &ContextView) -> Result<Vec<Arc<Message>>, Stop> {
    view.messages().map_err(|error| Stop::error("reading the request", &error))
}

/// Checks that the request fits before the host trims it, or that nothing more could be dropped.
pub(super) fn fits(view: &ContextView, what: impl Fn() -> String) -> Result<(), Stop> {
    let must_stay = (0..view.len()).filter(|&at| view.node(at).is_live());
    let is_bare = must_stay.clone().all(|at| view.is_protected(at));
    let (total, budget) = (view.total(), view.ledger().budget());
    ensure(
        total <= budget || is_bare,
        || format!("{}: the answer leaves {total} tokens, but only {budget} fit", what()),
        "drop until the remaining messages are within the budget",
    )
}

/// Groups of entries that belong together, before the engine was called.
pub(super) struct Groups(Vec<Vec<EntryId>>);

impl Groups {
    pub(super) fn of(view: &ContextView) -> Self {
        let mut groups: HashMap<u32, Vec<EntryId>> = HashMap::new();
        for node in view.nodes().iter().filter(|node| node.is_live()) {
            groups.entry(node.group).or_default().push(node.entry().id().clone());
        }
        Self(groups.into_values().filter(|group| group.len() > 1).collect())
    }

    /// Checks that each group was kept or dropped as a whole.
    pub(super) fn are_whole_in(&self, view: &ContextView) -> Result<(), Stop> {
        let live: HashSet<EntryId> = live(view).into_iter().collect();
        for group in &self.0 {
            let here = group.iter().filter(|id| live.contains(*id)).count();
            ensure(
                here == 0 || here == group.len(),
                || {
                    let left = group.iter().find(|id| live.contains(*id));
                    let left = left.map(ToString::to_string).unwrap_or_default();
                    format!("a tool call is separated from its results: '{left}' remains alone")
                },
                "drop all messages of a group or none of them",
            )?;
        }
        Ok(())
    }
}

/// Checks that every call in the request has its result.
pub(super) fn pairs(view: &ContextView) -> Result<(), Stop> {
    let messages = messages(view)?;
    check_pairs(messages.iter().map(AsRef::as_ref)).map_err(|wrong| {
        Stop::failed(format!("the request is refused by any model: {wrong}"), "keep pairs whole")
    })
}

/// Returns the protected entries, each with its role or `pinned`.
pub(super) fn must_stay(view: &ContextView) -> Vec<(EntryId, String)> {
    let kept = (0..view.len()).filter(|&at| view.node(at).is_live() && view.is_protected(at));
    let named = kept.map(|at| view.node(at)).map(|node| {
        let is_pinned = node.pinned && node.role() != &ctx_core::Role::System;
        let what = if is_pinned { "pinned".to_owned() } else { node.role().to_string() };
        (node.entry().id().clone(), what)
    });
    named.collect()
}

/// Checks that these entries are in the request.
pub(super) fn are_there(view: &ContextView, ids: &[(EntryId, String)]) -> Result<(), Stop> {
    let live: HashSet<EntryId> = live(view).into_iter().collect();
    let missing = ids.iter().find(|(id, _)| !live.contains(id));
    ensure(
        missing.is_none(),
        || {
            let (id, what) = missing.map(|(id, what)| (id.to_string(), what.as_str())).unzip();
            let (id, what) = (id.unwrap_or_default(), what.unwrap_or_default());
            format!("the answer drops the protected message '{id}' ({what})")
        },
        "keep the system prompt, pinned messages, the newest user message and the tool call \
         in progress",
    )
}

/// Checks that nothing is in the request twice.
pub(super) fn nothing_doubled(view: &ContextView) -> Result<(), Stop> {
    let mut seen = HashSet::new();
    for id in live(view) {
        let name = id.to_string();
        ensure(
            seen.insert(id),
            || format!("'{name}' is sent twice"),
            "identify messages by their ids: a host may send a message more than once",
        )?;
    }
    let mut texts = BTreeSet::new();
    let inserted = view.nodes().iter().filter(|node| node.state() == NodeState::Inserted);
    for node in inserted.filter(|node| node.outline.calls.is_empty() && node.results().is_empty()) {
        let message = node.message().map_err(|error| Stop::error("reading", &error))?;
        let text = message.plain_text();
        ensure(
            text.is_empty() || texts.insert(text),
            || format!("the insertion '{}' is sent twice", node.entry().id()),
            "record each insertion in the store, and insert it once",
        )?;
    }
    Ok(())
}

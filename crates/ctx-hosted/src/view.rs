//! Rebuilds a view from the stored state of a session.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ctx_core::{
    Compacted, ContextView, Entry, EntryId, Message, NodeState, Projection, ProjectionKey, RawJson,
    Result, Role, TokenLedger,
};
use serde::{Deserialize, Serialize};

use super::history::History;

/// The compaction in force. It is also stored in this form.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InForce {
    /// The summary entry.
    #[serde(rename = "entryId")]
    pub id: EntryId,
    /// The host's first message after the summary.
    pub first_kept: EntryId,
    /// Earlier messages that remain: instructions, pinned messages, the newest user message.
    pub staying: HashSet<EntryId>,
    /// Earlier messages that the summary replaces.
    pub covered: HashSet<EntryId>,
    /// The summary and its details.
    pub compacted: Compacted,
}

impl InForce {
    /// Returns the compaction just made in `view`.
    pub fn of(view: &ContextView, history: &History, compacted: Compacted) -> Option<Self> {
        // The first kept entry may come from the engine. Use the next entry of the host then.
        let kept = &compacted.first_kept_entry_id;
        let live = || view.nodes().iter().filter(|node| node.is_live());
        let mut kept = live().map(|node| node.entry().id()).skip_while(|id| *id != kept);
        let (first_kept, at) = kept.find_map(|id| Some((id, history.position(id)?)))?;
        let is_summary = |node: &&ctx_core::Node| {
            *node.role() == Role::CompactionSummary && node.state() == NodeState::Inserted
        };
        let summary = live().find(is_summary);
        let id = summary.map_or_else(|| "".into(), |node| node.entry().id().clone());
        let is_before = |id: &&EntryId| history.position(id).is_some_and(|place| place < at);
        let staying: HashSet<_> =
            live().map(|node| node.entry().id()).filter(is_before).cloned().collect();
        let before = history.items()[..at].iter().map(|item| item.entry.id());
        let covered = before.filter(|id| !staying.contains(*id)).cloned().collect();
        Some(Self { id, compacted, first_kept: first_kept.clone(), staying, covered })
    }

    /// Returns the id of the summary entry, if any.
    pub fn summary_id(&self) -> Option<&EntryId> {
        (!self.id.is_empty()).then_some(&self.id)
    }

    /// Whether its summary replaces that message.
    pub fn covers_entry(&self, id: &EntryId) -> bool {
        self.covered.contains(id)
    }

    /// Whether it still matches the beginning of a history: all covered messages precede the first
    /// kept one, and otherwise only staying messages and instructions do.
    pub fn covers(&self, history: &History) -> bool {
        let Some(at) = history.position(&self.first_kept) else { return false };
        let mut covered = 0;
        for item in &history.items()[..at] {
            let id = item.entry.id();
            if self.covered.contains(id) {
                covered += 1;
            } else if !self.staying.contains(id) && !is_instruction(&item.entry) {
                return false;
            }
        }
        covered == self.covered.len()
    }

    /// Whether `ids` contains all messages it refers to.
    pub fn is_within(&self, ids: &HashSet<&EntryId>) -> bool {
        let mut all = self.covered.iter().chain(&self.staying).chain([&self.first_kept]);
        all.all(|id| ids.contains(id))
    }

    fn summary(&self) -> Option<Arc<Entry>> {
        if self.compacted.summary.is_empty() {
            return None;
        }
        let text = self.compacted.summary.clone();
        let mut summary = Message::text(Role::CompactionSummary, text);
        summary.meta.tokens_before = Some(self.compacted.tokens_before.get());
        let details = self.compacted.details.as_ref();
        summary.meta.details = details.map(|details| RawJson::from_text(details.to_string()));
        Some(Arc::new(Entry::in_memory(self.id.clone(), summary)))
    }
}

/// Rebuilds the view of `history` with the stored projections and the compaction in force.
pub(crate) fn rebuild_view(
    ledger: &TokenLedger,
    history: &History,
    projections: &HashMap<ProjectionKey, Projection>,
    in_force: Option<&InForce>,
) -> Result<ContextView> {
    let mut view = ContextView::new(ledger.clone()).with_projections(projections.values().cloned());
    let mut from = 0;
    if let Some(in_force) = in_force {
        let mut summary = in_force.summary();
        from = history.position(&in_force.first_kept).unwrap_or(0);
        for item in &history.items()[..from] {
            if !in_force.covered.contains(item.entry.id()) {
                view.append(item.entry.clone())?;
            } else if let Some(summary) = summary.take() {
                // The summary is put in the place of the first message that it replaces.
                view.append(summary)?;
            }
        }
        if let Some(summary) = summary {
            view.append(summary)?;
        }
    }
    for item in &history.items()[from..] {
        view.append(item.entry.clone())?;
    }
    Ok(view)
}

fn is_instruction(entry: &Entry) -> bool {
    entry.outline().is_ok_and(|facts| facts.role == Role::System)
}

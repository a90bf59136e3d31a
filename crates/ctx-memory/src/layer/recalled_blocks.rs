//! The recall blocks that a view holds.

use std::collections::HashSet;
use std::sync::Arc;

use ctx_core::{
    ContentHash, ContextView, Entry, EntryId, Message, NodeState, Result, Role, Tokens, ViewId,
};

use super::Recall;

/// The memory state of a view.
#[derive(Default)]
pub(super) struct RecalledBlocks {
    /// The last user message that memory was searched for.
    pub(super) asked: Option<Anchor>,
    /// The newest summary at that time.
    pub(super) summary: Option<ContentHash>,
    pub(super) blocks: Vec<RecalledBlock>,
}

#[derive(Clone)]
pub(super) struct RecalledBlock {
    pub(super) id: EntryId,
    /// The message that it was recalled for.
    pub(super) of: Anchor,
    pub(super) text: String,
    pub(super) tokens: Tokens,
    /// The entries it quotes.
    pub(super) entries: Vec<EntryId>,
    /// False if the view was rebuilt and the block is not yet inserted into it.
    pub(super) is_inserted: bool,
}

/// The message that a block belongs to. An edited message differs, even with the same id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Anchor {
    id: EntryId,
    content: Option<ContentHash>,
}

impl Anchor {
    pub(super) fn of(entry: &Entry) -> Self {
        Self { id: entry.id().clone(), content: entry.hash().ok() }
    }

    /// Returns the position of the message.
    pub(super) fn position(&self, view: &ContextView) -> Option<usize> {
        let is_it = |node: &ctx_core::Node| {
            let entry = node.entry();
            node.is_live() && *entry.id() == self.id && entry.hash().ok() == self.content
        };
        view.nodes().iter().position(is_it)
    }
}

impl RecalledBlocks {
    /// Returns the blocks that a rebuilt view, for example after an undo, takes over from earlier
    /// views: blocks whose messages are still there. The beginning of the request then stays the
    /// same up to the first changed message.
    pub(super) fn after(older: &[(ViewId, Self)], view: &ContextView) -> Self {
        let kept = |old: &Self| {
            let blocks = old.blocks.iter().filter(|block| block.of.position(view).is_some());
            let blocks: Vec<_> =
                blocks.map(|block| RecalledBlock { is_inserted: false, ..block.clone() }).collect();
            let (asked, summary) = (old.asked.clone(), old.summary);
            (!blocks.is_empty()).then_some(Self { asked, summary, blocks })
        };
        older.iter().rev().find_map(|(_, old)| kept(old)).unwrap_or_default()
    }

    /// Inserts the blocks of an earlier view at the positions given by `place`.
    pub(super) fn restore(
        &mut self,
        view: &mut ContextView,
        place: impl Fn(&ContextView, &Anchor) -> Option<usize>,
    ) -> Result<()> {
        for block in self.blocks.iter_mut().filter(|block| !block.is_inserted) {
            let Some(at) = place(view, &block.of) else { continue };
            let message = Message::text(Role::User, block.text.clone());
            let entry = Arc::new(Entry::in_memory(block.id.clone(), message));
            view.insert(at, entry, Recall::ID, "recalled before: the request stays as it was")?;
            block.is_inserted = true;
        }
        self.blocks.retain(|block| block.is_inserted);
        Ok(())
    }

    /// Drops blocks that something else removed from the view, such as a compaction.
    pub(super) fn forget_removed(&mut self, view: &ContextView) {
        let nodes = view.nodes().iter();
        let added: HashSet<&EntryId> = nodes
            .filter(|node| node.is_live() && node.state() == NodeState::Inserted)
            .map(|node| node.entry().id())
            .collect();
        self.blocks.retain(|block| !block.is_inserted || added.contains(&block.id));
    }

    /// The size of all blocks.
    pub(super) fn tokens(&self) -> Tokens {
        self.blocks.iter().map(|block| block.tokens).sum()
    }
}

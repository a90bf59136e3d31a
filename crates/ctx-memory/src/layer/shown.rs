//! The blocks of memory that a view holds.

use std::collections::HashSet;
use std::sync::Arc;

use ctx_core::{
    ContentHash, ContextView, Entry, EntryId, Message, NodeState, Result, Role, Tokens, ViewId,
};

use super::{Recall, trim};

/// What a view holds of memory.
#[derive(Default)]
pub(super) struct Shown {
    /// The user message that memory was last asked for.
    pub(super) asked: Option<Anchor>,
    pub(super) blocks: Vec<ShownBlock>,
    pub(super) trim: trim::Index,
}

#[derive(Clone)]
pub(super) struct ShownBlock {
    pub(super) id: EntryId,
    /// The message that it was recalled for.
    pub(super) of: Anchor,
    pub(super) text: String,
    pub(super) tokens: Tokens,
    /// The entries whose words it holds.
    pub(super) entries: Vec<EntryId>,
    /// False where the view was made anew and the block is yet to be put into it.
    pub(super) stands: bool,
}

/// A message that a block belongs to. One that was edited is another, whatever its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Anchor {
    id: EntryId,
    content: Option<ContentHash>,
}

impl Anchor {
    pub(super) fn of(entry: &Entry) -> Self {
        Self { id: entry.id().clone(), content: entry.hash().ok() }
    }

    /// Where the message stands.
    pub(super) fn position(&self, view: &ContextView) -> Option<usize> {
        let is_it = |node: &ctx_core::Node| {
            let entry = node.entry();
            node.is_live() && *entry.id() == self.id && entry.hash().ok() == self.content
        };
        view.nodes().iter().position(is_it)
    }
}

impl Shown {
    /// What stays of earlier views in one that was made anew, as after an undo: the blocks whose
    /// messages are still there, so that the request is what it was as far as it is the same talk.
    pub(super) fn after(older: &[(ViewId, Self)], view: &ContextView) -> Self {
        let kept = |old: &Self| {
            let blocks = old.blocks.iter().filter(|block| block.of.position(view).is_some());
            let blocks: Vec<_> =
                blocks.map(|block| ShownBlock { stands: false, ..block.clone() }).collect();
            let asked = old.asked.clone();
            (!blocks.is_empty()).then(|| Self { asked, blocks, ..Self::default() })
        };
        older.iter().rev().find_map(|(_, old)| kept(old)).unwrap_or_default()
    }

    /// Puts the blocks of an earlier view where `place` says.
    pub(super) fn restore(
        &mut self,
        view: &mut ContextView,
        place: impl Fn(&ContextView, &Anchor) -> Option<usize>,
    ) -> Result<()> {
        for block in self.blocks.iter_mut().filter(|block| !block.stands) {
            let Some(at) = place(view, &block.of) else { continue };
            let message = Message::text(Role::User, block.text.clone());
            let entry = Arc::new(Entry::held(block.id.clone(), message));
            view.insert(at, entry, Recall::ID, "recalled before: the request stays as it was")?;
            block.stands = true;
        }
        self.blocks.retain(|block| block.stands);
        Ok(())
    }

    /// Forgets blocks that somebody else took out, such as a compaction.
    pub(super) fn let_go_of_what_left(&mut self, view: &ContextView) {
        let nodes = view.nodes().iter();
        let added: HashSet<&EntryId> = nodes
            .filter(|node| node.is_live() && node.state() == NodeState::Inserted)
            .map(|node| node.entry().id())
            .collect();
        self.blocks.retain(|block| !block.stands || added.contains(&block.id));
    }

    /// What all blocks take.
    pub(super) fn tokens(&self) -> Tokens {
        self.blocks.iter().map(|block| block.tokens).sum()
    }

    /// What those take that are yet to be put into the view.
    pub(super) fn unplaced(&self) -> Tokens {
        self.blocks.iter().filter(|block| !block.stands).map(|block| block.tokens).sum()
    }
}

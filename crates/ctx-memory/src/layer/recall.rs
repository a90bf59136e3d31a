//! The recall block.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use ctx_core::{
    ContentHash, ContextView, Entry, EntryId, Layer, MemoryStore, Message, NodeState, Pending,
    Prepared, RecallRequest, Recollection, Result, Role, Tokens, TurnContext,
};

use super::recalled_blocks::{Anchor, RecalledBlock, RecalledBlocks};
use crate::recall::{build_recall_block, query_of};
use crate::{Config, Placement};
use ctx_core::{Views, Warnings};

/// Recalls relevant messages from memory. The recalled block is one user message, made for each new
/// user message, and again when a compaction has removed history: the block goes with it, and the
/// provider's cached prefix ends before it anyway.
///
/// # Notes
///
/// It runs after compaction and trim, and a block has at most the tokens that are left in the window.
/// Earlier blocks stay until their history is compacted: removing one would break the provider's
/// cached prefix. A query of less than three letters, or two Chinese characters, recalls
/// nothing. A failing memory costs the block and a warning, never the request.
///
/// # Default
///
/// Off, with `agents.defaults.memoryContext.enabled`.
pub struct Recall {
    config: Arc<Config>,
    memory: Arc<dyn MemoryStore>,
    state: Mutex<RecallState>,
}

#[derive(Default)]
struct RecallState {
    views: Views<RecalledBlocks>,
    warnings: Warnings,
}

/// What `prepare` passes to `apply`.
struct PreparedRecall {
    newest: Anchor,
    recollection: Recollection,
}

impl Recall {
    /// The layer's name in manifests.
    pub const ID: &'static str = "memory";

    /// Returns a layer that recalls from `memory`.
    #[must_use]
    pub fn new(config: Config, memory: Arc<dyn MemoryStore>) -> Self {
        Self { config: Arc::new(config), memory, state: Mutex::default() }
    }
}

impl Layer for Recall {
    fn id(&self) -> &'static str {
        Self::ID
    }

    fn prepare(&self, view: &ContextView, turn: &TurnContext) -> Option<Pending> {
        let newest = Anchor::of(view.node(view.newest_user_at()?).entry());
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = state.views.of_or(view, |older| RecalledBlocks::after(older, view));
        shown.forget_removed(view);
        let summary = summary_of(view);
        if shown.asked.as_ref() == Some(&newest) && shown.summary == summary {
            return None;
        }
        let query = query(view);
        // A block that may be replaced does not count as visible.
        let staying = if self.replaces_earlier() { &[][..] } else { &shown.blocks };
        let live = view.nodes().iter().filter(|node| node.is_live());
        let of_blocks = staying.iter().flat_map(|block| block.entries.iter().cloned());
        let mut visible = HashSet::with_capacity(view.len());
        visible.extend(live.map(|node| node.entry().id().clone()).chain(of_blocks));
        let (memory, settings) = (self.memory.clone(), &self.config.recall);
        let request = RecallRequest {
            query: String::new(),
            now: turn.now,
            visible,
            min_score: self.config.auto_recall_min_score as f32,
            passages: settings.passages as usize,
            facts: settings.facts as usize,
        };
        Some(Box::pin(async move {
            let recollection = match query? {
                None => Recollection::default(),
                Some(query) => memory
                    .recall(RecallRequest { query, ..request })
                    .await
                    .unwrap_or_else(|e| failed(&e)),
            };
            Ok(Box::new(PreparedRecall { newest, recollection }) as Prepared)
        }))
    }

    fn apply(
        &self,
        view: &mut ContextView,
        prepared: Option<Prepared>,
        turn: &TurnContext,
    ) -> Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let RecallState { views, warnings } = &mut *state;
        let shown = views.of_or(view, |older| RecalledBlocks::after(older, view));
        let before = |view: &ContextView, anchor: &Anchor| match self.config.recall.placement {
            Placement::BeforeNewest => anchor.position(view),
            Placement::AfterSummary => Some(self.place(view)),
        };
        shown.restore(view, before)?;
        let asked = prepared.and_then(|prepared| prepared.downcast::<PreparedRecall>().ok());
        let Some(asked) = asked else { return Ok(()) };
        let PreparedRecall { newest, recollection } = *asked;
        for warning in &recollection.warnings {
            warnings.push(warning.clone());
        }
        self.show(view, shown, &recollection, (&newest, turn))?;
        shown.asked = Some(newest);
        shown.summary = summary_of(view);
        Ok(())
    }

    fn take_warnings(&self) -> Vec<String> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).warnings.take()
    }
}

impl Recall {
    /// Whether a new block replaces the earlier one.
    fn replaces_earlier(&self) -> bool {
        self.config.recall.placement == Placement::AfterSummary
    }

    /// Inserts the block of a recollection, in place of the earlier one or beside it. If nothing was
    /// recalled, it does not fit, or the earlier block has the best passage, the view stays
    /// unchanged.
    fn show(
        &self,
        view: &mut ContextView,
        shown: &mut RecalledBlocks,
        found: &Recollection,
        (newest, turn): (&Anchor, &TurnContext),
    ) -> Result<()> {
        let leave = self.replaces_earlier();
        let freed = if leave { shown.tokens() } else { Tokens::ZERO };
        let left = view.ledger().budget() - (view.total() - freed);
        let largest = self.config.hard_cap(view.ledger().window()).min(left);
        let counter = *view.ledger().counter();
        let block = build_recall_block(&found.facts, &found.passages, largest, &counter);
        let Some(block) = block else { return Ok(()) };
        let best = found.passages.first().and_then(|passage| passage.entry.as_ref());
        let answers = |last: &RecalledBlock| {
            last.text == block.text || best.is_some_and(|best| last.entries.contains(best))
        };
        if let Some(last) = shown.blocks.last_mut().filter(|last| leave && answers(last)) {
            last.of = newest.clone();
            return Ok(());
        }
        if leave {
            take_out(view, shown.blocks.drain(..));
        }
        let entries = block.passages.iter().filter_map(|&at| found.passages[at].entry.clone());
        let entries = entries.collect();
        let reason = format!("recalled: facts {}, passages {}", block.facts, block.passages.len());
        let id: EntryId = turn.ids.next_id().into();
        let entry = Entry::in_memory(id.clone(), Message::text(Role::User, block.text.clone()));
        let at = self.place(view);
        view.insert(at, Arc::new(entry), Self::ID, reason)?;
        let (text, tokens, of) = (block.text, block.tokens, newest.clone());
        shown.blocks.push(RecalledBlock { id, of, text, tokens, entries, is_inserted: true });
        Ok(())
    }

    /// Returns the position of the block.
    fn place(&self, view: &ContextView) -> usize {
        let opens = |role: &Role| matches!(role, Role::System | Role::CompactionSummary);
        match self.config.recall.placement {
            Placement::BeforeNewest => view.newest_user_at().unwrap_or(view.len()),
            Placement::AfterSummary => {
                let mut nodes = view.nodes().iter();
                nodes.position(|n| n.is_live() && !opens(n.role())).unwrap_or(view.len())
            }
        }
    }
}

/// Returns the recollection of a failed recall.
fn failed(error: &ctx_core::Error) -> Recollection {
    let warnings = vec![format!("nothing was recalled: {error}")];
    Recollection { warnings, ..Recollection::default() }
}

fn take_out(view: &mut ContextView, blocks: impl Iterator<Item = RecalledBlock>) {
    let ids: Vec<EntryId> = blocks.map(|block| block.id).collect();
    for id in ids {
        let of = |node: &ctx_core::Node| node.is_live() && *node.entry().id() == id;
        if let Some(at) = view.nodes().iter().position(of) {
            view.drop(at, Recall::ID, "recalled for an earlier message");
        }
    }
}

/// Returns the hash of the newest summary.
fn summary_of(view: &ContextView) -> Option<ContentHash> {
    let mut nodes = view.nodes().iter().rev();
    let node = nodes.find(|node| node.is_live() && *node.role() == Role::CompactionSummary)?;
    node.entry().hash().ok()
}

/// Returns the query made from the last user messages.
pub(super) fn query(view: &ContextView) -> Result<Option<String>> {
    // More are read than needed, because some are empty.
    const READ: usize = 6;
    let said = |node: &&ctx_core::Node| {
        node.is_live() && node.is_user() && node.state() != NodeState::Inserted
    };
    let newest = view.nodes().iter().rev().filter(said).take(READ);
    let mut texts = newest
        .map(|node| node.message().map(|message| message.plain_text()))
        .collect::<Result<Vec<String>>>()?;
    texts.reverse();
    Ok(query_of(texts.iter().map(String::as_str)))
}

ctx_core::partial_debug!(Recall, it, config = it.config);

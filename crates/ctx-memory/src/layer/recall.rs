//! Smart trim and the recall block.

use std::sync::{Arc, Mutex, PoisonError};

use ctx_core::{
    ContextView, Entry, EntryId, Layer, MemoryStore, Message, NodeState, Pending, Prepared,
    RecallRequest, Recollection, Result, Role, Tokens, TurnContext,
};

use super::recalled_blocks::{Anchor, RecalledBlock, RecalledBlocks};
use crate::recall::{RecallBlock, build_recall_block, query_of};
use crate::{Config, Placement};
use ctx_core::Views;
use ctx_core::Warnings;

/// Earlier blocks stay until all blocks together exceed this many times the largest block: removing
/// one breaks the provider's cached prefix from there on.
const BLOCKS_KEPT: u32 = 4;

/// The number of messages indexed in a turn that does not trim, to prepare for a trim.
const READ_A_TURN: usize = 16;

/// Trims the messages least relevant to the current question when the window is nearly full, and
/// recalls relevant messages from memory. The recalled block is one user message, rebuilt for each
/// new user message.
///
/// # Notes
///
/// It runs after pruning and before compaction: small cuts before large ones, and a cut by
/// relevance before a cut by age. The limit is window minus reserve minus `hardCapTokens`, so that
/// the block always fits. Trimmed messages stay trimmed. A query of less than three letters, or two
/// Chinese characters, neither trims nor recalls. A failing memory costs the block and a warning,
/// never the request.
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
        if shown.asked.as_ref() == Some(&newest) {
            return None;
        }
        let query = query(view);
        // Entries of a block that is removed in this turn are no longer visible and may be recalled
        // again.
        let used = view.used() + shown.pending_tokens();
        let leave = self.replaces_earlier(view, shown) || used > self.limit(view);
        let staying = if leave { &[][..] } else { &shown.blocks };
        let live = view.nodes().iter().filter(|node| node.is_live());
        let of_blocks = staying.iter().flat_map(|block| block.entries.iter().cloned());
        let visible = live.map(|node| node.entry().id().clone()).chain(of_blocks).collect();
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
        self.make_room(view, shown)?;
        let Some(asked) = asked else { return Ok(()) };
        let PreparedRecall { newest, recollection } = *asked;
        for warning in &recollection.warnings {
            warnings.push(warning.clone());
        }
        self.show(view, shown, &recollection, (&newest, turn))?;
        shown.asked = Some(newest);
        Ok(())
    }

    fn take_warnings(&self) -> Vec<String> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).warnings.take()
    }
}

impl Recall {
    /// Returns the largest request that leaves space for a block.
    fn limit(&self, view: &ContextView) -> Tokens {
        view.ledger().limit() - self.config.hard_cap(view.ledger().window())
    }

    /// If the request is over the limit, removes earlier blocks and then the least relevant
    /// messages.
    fn make_room(&self, view: &mut ContextView, shown: &mut RecalledBlocks) -> Result<()> {
        let limit = self.limit(view);
        if view.used() <= limit {
            // A view that fills up will have to be trimmed.
            let fills_up = view.used() > limit.scale(0.5);
            return if fills_up { shown.trim.learn(view, READ_A_TURN) } else { Ok(()) };
        }
        let current = view.newest_user_at().map(|at| Anchor::of(view.node(at).entry()));
        // The block of the current message stays: the model relies on it.
        let is_current = |block: &RecalledBlock| Some(&block.of) == current.as_ref();
        let kept = usize::from(shown.blocks.last().is_some_and(is_current));
        let past = shown.blocks.len().saturating_sub(kept);
        take_out(view, shown.blocks.drain(..past), "recalled for an earlier message");
        if view.used() <= limit {
            return Ok(());
        }
        let Some(query) = query(view)? else { return Ok(()) };
        let over = view.used() - limit.scale(self.config.recall.trim_to);
        let keep_recent = self.config.recall.keep_recent as usize;
        for (at, reason) in shown.trim.plan(view, &query, over, keep_recent)? {
            view.drop(at, Self::ID, reason.words());
        }
        Ok(())
    }

    /// Whether a new block replaces the earlier blocks.
    fn replaces_earlier(&self, view: &ContextView, shown: &RecalledBlocks) -> bool {
        let largest = self.config.hard_cap(view.ledger().window()).get();
        self.config.recall.placement == Placement::AfterSummary
            || shown.tokens().get() > largest * u64::from(BLOCKS_KEPT - 1)
    }

    /// Inserts the block of a recollection and removes the blocks it replaces. If nothing was
    /// recalled or it does not fit, the view stays unchanged.
    fn show(
        &self,
        view: &mut ContextView,
        shown: &mut RecalledBlocks,
        found: &Recollection,
        (newest, turn): (&Anchor, &TurnContext),
    ) -> Result<()> {
        let largest = self.config.hard_cap(view.ledger().window());
        let counter = *view.ledger().counter();
        let block = build_recall_block(&found.facts, &found.passages, largest, &counter);
        let Some(block) = block else { return Ok(()) };
        let leave = self.replaces_earlier(view, shown);
        let one_at_a_time = self.config.recall.placement == Placement::AfterSummary;
        let same = |last: &&mut RecalledBlock| one_at_a_time && last.text == block.text;
        if let Some(last) = shown.blocks.last_mut().filter(same) {
            last.of = newest.clone();
            return Ok(());
        }
        let freed = if leave { shown.tokens() } else { Tokens::ZERO };
        if view.used() - freed + block.tokens > view.ledger().limit() {
            return Ok(());
        }
        if leave {
            take_out(view, shown.blocks.drain(..), "recalled for an earlier message");
        }
        let entries = block.passages.iter().filter_map(|&at| found.passages[at].entry.clone());
        let entries = entries.collect();
        let reason = words(&block);
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

/// `2 facts and 5 passages that fit what is being asked`.
fn words(block: &RecallBlock) -> String {
    let counted = |n: usize, what: &str| match n {
        0 => None,
        1 => Some(format!("1 {what}")),
        _ => Some(format!("{n} {what}s")),
    };
    let parts = [counted(block.facts, "fact"), counted(block.passages.len(), "passage")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("recalled: {} for the newest message", parts.join(" and "))
}

fn take_out(
    view: &mut ContextView,
    blocks: impl Iterator<Item = RecalledBlock>,
    why: &'static str,
) {
    let ids: Vec<EntryId> = blocks.map(|block| block.id).collect();
    for id in ids {
        let of = |node: &ctx_core::Node| node.is_live() && *node.entry().id() == id;
        if let Some(at) = view.nodes().iter().position(of) {
            view.drop(at, Recall::ID, why);
        }
    }
}

/// Returns the query made from the last user messages.
fn query(view: &ContextView) -> Result<Option<String>> {
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

impl std::fmt::Debug for Recall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recall").field("config", &self.config).finish_non_exhaustive()
    }
}

//! The working copy of what the model will see.

mod append;
mod arrange;
mod compact;
mod edit;
mod engine;
mod finish;
mod group;
mod node;
mod pairs;
mod pointers;
mod projections;
mod protected;
mod report;
mod shrink;
mod views;

use crate::{Compacted, Edit, EngineNote, TokenLedger, Tokens};

pub use append::ORPHANED_RESULT;
pub use arrange::MISSING_RESULT_NOTICE;
pub use engine::ViewId;
pub use finish::Finished;
pub use group::NodeHandle;
pub use node::Node;
pub use pairs::check_pairs;
pub use protected::common_cap;
pub use shrink::{CONTEXT_LIMIT_TRUNCATION_NOTICE, MIDDLE_OMITTED_NOTICE, shortened};
pub use views::Views;

/// The layer name of the view's own edits in the manifest.
pub(crate) const FINISH: &str = "finish";

/// The distance between the `seq` of two appended nodes, so that inserted ones fit between.
const SEQ_STEP: u64 = 1 << 20;

/// A working copy of the model-visible messages of one session branch, with the budget.
///
/// All changes of the model's view are made through this type. Every edit is recorded with its
/// layer and reason. A view lives as long as its session: the cost of appending a turn depends only
/// on the size of the turn, and truncated messages stay truncated.
///
/// The edits themselves enforce two rules: a tool call and its results form one *group* and are
/// dropped together, and system messages, summaries, pinned messages, the newest user message and
/// the tool call in progress cannot be dropped. [`ContextView::finish`] enforces the others.
///
/// # Example
///
/// ```
/// use std::sync::Arc;
/// use ctx_core::{ContextView, Counter, Entry, Message, Role, TokenLedger, Tokens};
///
/// let ledger = TokenLedger::new(Counter::default(), Tokens(16_000), Tokens(4_000));
/// let mut view = ContextView::new(ledger);
/// for n in 0..40 {
///     let message = Message::text(Role::User, "a long story ".repeat(200));
///     view.append(Arc::new(Entry::in_memory(format!("{n:08x}"), message)))?;
/// }
/// let finished = view.finish()?;
/// assert!(finished.tokens <= Tokens(12_000));
/// assert!(view.messages()?.len() < 40);
/// # Ok::<(), ctx_core::Error>(())
/// ```
#[derive(Debug)]
pub struct ContextView {
    /// The engine selected for this request, its state, and the reason if a fallback made the
    /// request: for the manifest.
    pub engine: Option<EngineNote>,
    id: ViewId,
    ledger: TokenLedger,
    /// In the order of the request. Dropped nodes stay until the next `finish`.
    nodes: Vec<Node>,
    /// Dropped nodes, for the manifest.
    dropped: Vec<Node>,
    total: u64,
    result_total: u64,
    edits: Vec<Edit>,
    next_seq: u64,
    next_key: u64,
    groups: Vec<group::NodeGroup>,
    calls: pairs::Calls,
    newest_user: Option<NewestUser>,
    /// The groups of the answer in progress.
    in_progress: Vec<u32>,
    /// Whether the last appended message is from the assistant.
    answering: bool,
    /// Counts appended messages; all messages of one answer count as one.
    round: u32,
    due: Vec<PendingDrop>,
    projections: projections::Projections,
    pointers: Vec<pointers::Pointer>,
    compactions: Vec<Compacted>,
    sent: finish::Sent,
    system_addition: Option<String>,
}

#[derive(Clone, Copy, Debug)]
struct NewestUser {
    key: u64,
    group: u32,
}

/// A group that was dropped earlier and is dropped again when nothing protects it.
#[derive(Debug)]
struct PendingDrop {
    group: u32,
    why: node::Reason,
}

impl ContextView {
    /// Creates an empty view.
    #[must_use]
    pub fn new(ledger: TokenLedger) -> Self {
        Self {
            engine: None,
            id: ViewId::default(),
            ledger,
            nodes: Vec::new(),
            dropped: Vec::new(),
            total: 0,
            result_total: 0,
            edits: Vec::new(),
            next_seq: SEQ_STEP,
            next_key: 0,
            groups: Vec::new(),
            calls: pairs::Calls::default(),
            newest_user: None,
            in_progress: Vec::new(),
            answering: false,
            round: 0,
            due: Vec::new(),
            projections: projections::Projections::default(),
            pointers: Vec::new(),
            compactions: Vec::new(),
            sent: finish::Sent::default(),
            system_addition: None,
        }
    }

    /// Returns the budget.
    pub fn ledger(&self) -> &TokenLedger {
        &self.ledger
    }

    /// Returns the budget, to calibrate it or to set the pending input.
    pub fn ledger_mut(&mut self) -> &mut TokenLedger {
        &mut self.ledger
    }

    /// Returns the number of addressable nodes, including those dropped since the last `finish`.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether the view has no nodes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns the node at a position. Positions change with `insert`, `append` and `finish`.
    ///
    /// # Panics
    ///
    /// If `at` is not less than [`ContextView::len`].
    #[must_use]
    pub fn node(&self, at: usize) -> &Node {
        &self.nodes[at]
    }

    /// Returns all addressable nodes, oldest first.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns the messages dropped so far, in the order of their drops. A dropped message is
    /// included from the next `finish` on.
    #[must_use]
    pub fn dropped(&self) -> &[Node] {
        &self.dropped
    }

    /// Returns the first position that was appended since the last `finish`.
    #[must_use]
    pub fn fresh_from(&self) -> usize {
        self.sent.nodes
    }

    /// Returns the first position that differs from the last sent request. What follows is not in
    /// the provider's cache.
    #[must_use]
    pub fn changed_from(&self) -> usize {
        self.sent.dirty.min(self.sent.nodes)
    }

    /// Returns the position of the user's newest message that no layer inserted.
    #[must_use]
    pub fn newest_user_at(&self) -> Option<usize> {
        self.nodes.iter().rposition(|node| {
            node.is_live() && node.is_user() && node.state() != crate::NodeState::Inserted
        })
    }

    /// Returns the tokens of all messages to be sent, uncorrected.
    #[must_use]
    pub fn total(&self) -> Tokens {
        Tokens::saturating_from(self.total)
    }

    /// Returns the tokens of all messages that contain tool results, uncorrected.
    #[must_use]
    pub fn result_total(&self) -> Tokens {
        Tokens::saturating_from(self.result_total)
    }

    /// Returns the tokens of the whole request: messages, system prompt, tool schemas, pending
    /// input; corrected by the ledger's calibration.
    #[must_use]
    pub fn used(&self) -> Tokens {
        self.ledger.corrected(self.total() + self.ledger.fixed())
    }

    /// Returns by how much the messages exceed their budget.
    #[must_use]
    pub fn overflow(&self) -> Tokens {
        self.total() - self.ledger.budget()
    }

    /// Returns all edits since the view was created.
    #[must_use]
    pub fn edits(&self) -> &[Edit] {
        &self.edits
    }

    fn fresh_key(&mut self) -> u64 {
        self.next_key += 1;
        self.next_key
    }
}

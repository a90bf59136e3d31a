//! The working copy of what the model will see.

mod append;
mod arrange;
mod compact;
mod edit;
mod engine;
mod finish;
mod forms;
mod group;
mod node;
mod pairs;
mod protected;
mod report;
mod shrink;

use crate::{Compacted, Edit, EngineNote, TokenLedger, Tokens};

pub use append::ORPHANED_RESULT;
pub use arrange::MISSING_RESULT_NOTICE;
pub use engine::ViewId;
pub use finish::Finished;
pub use group::Place;
pub use node::{Node, NodeState};
pub use pairs::check_pairs;
pub use protected::common_cap;
pub use shrink::{CONTEXT_LIMIT_TRUNCATION_NOTICE, MIDDLE_OMITTED_NOTICE, shortened};

/// The name under which the view's own edits stand in the manifest.
pub(crate) const FINISH: &str = "finish";

/// Distance between the places of two appended nodes, so that inserted ones fit between.
const SEQ_STEP: u64 = 1 << 20;

/// A working copy of the model-visible messages of one session branch, with the budget.
///
/// It is the only means by which anything changes what the model sees. Every edit is recorded with
/// its layer and reason. A view lives as long as its session: appending a turn costs what the turn
/// holds, and what was cut stays cut.
///
/// Two rules are kept by the edits themselves: a tool call and its results are one *group* and go
/// together, and system messages, summaries, pinned ones, the newest user message and the tool call
/// in progress cannot be dropped. [`ContextView::finish`] keeps the rest.
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
///     view.append(Arc::new(Entry::held(format!("{n:08x}"), message)))?;
/// }
/// let finished = view.finish()?;
/// assert!(finished.tokens <= Tokens(12_000));
/// assert!(view.messages()?.len() < 40);
/// # Ok::<(), ctx_core::Error>(())
/// ```
#[derive(Debug)]
pub struct ContextView {
    id: ViewId,
    ledger: TokenLedger,
    /// In the order of the request. Dropped ones stay until the next `finish`.
    nodes: Vec<Node>,
    /// What does not go out, for the manifest.
    gone: Vec<Node>,
    total: u64,
    result_total: u64,
    edits: Vec<Edit>,
    next_seq: u64,
    next_key: u64,
    groups: Vec<group::Group>,
    calls: pairs::Calls,
    newest_user: Option<NewestUser>,
    /// The groups of the answer that is being worked on.
    in_progress: Vec<u32>,
    /// Whether the last message that came was one of the assistant.
    answering: bool,
    /// Counts the messages that came, those of one answer as one.
    round: u32,
    due: Vec<Due>,
    forms: forms::Forms,
    compactions: Vec<Compacted>,
    sent: finish::Sent,
    system_addition: Option<String>,
    engine: Option<EngineNote>,
}

#[derive(Clone, Copy, Debug)]
struct NewestUser {
    key: u64,
    group: u32,
}

/// A group that was dropped in the past, and will be again when nothing protects it any more.
#[derive(Debug)]
struct Due {
    group: u32,
    why: node::Why,
}

impl ContextView {
    /// An empty view.
    #[must_use]
    pub fn new(ledger: TokenLedger) -> Self {
        Self {
            id: ViewId::default(),
            ledger,
            nodes: Vec::new(),
            gone: Vec::new(),
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
            forms: forms::Forms::default(),
            compactions: Vec::new(),
            sent: finish::Sent::default(),
            system_addition: None,
            engine: None,
        }
    }

    /// The budget.
    #[must_use]
    pub fn ledger(&self) -> &TokenLedger {
        &self.ledger
    }

    /// The budget, to calibrate it or to set the pending input.
    pub fn ledger_mut(&mut self) -> &mut TokenLedger {
        &mut self.ledger
    }

    /// How many nodes can be addressed. Dropped nodes stay addressable until the next `finish`.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no node.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The node at a position. Positions hold until the next `insert`, `append` or `finish`.
    ///
    /// # Panics
    ///
    /// If `at` is not less than [`ContextView::len`].
    #[must_use]
    pub fn node(&self, at: usize) -> &Node {
        &self.nodes[at]
    }

    /// All addressable nodes, oldest first.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// What went out of the request in the past, in the order in which it went: dropped messages
    /// are here from the `finish` after their drop on.
    #[must_use]
    pub fn left_out(&self) -> &[Node] {
        &self.gone
    }

    /// The first position that was appended since the last `finish`.
    #[must_use]
    pub fn fresh_from(&self) -> usize {
        self.sent.nodes
    }

    /// Tokens of all messages that go out, uncorrected.
    #[must_use]
    pub fn total(&self) -> Tokens {
        Tokens::saturating_from(self.total)
    }

    /// Tokens of all messages that hold tool results, uncorrected.
    #[must_use]
    pub fn result_total(&self) -> Tokens {
        Tokens::saturating_from(self.result_total)
    }

    /// Tokens of the whole request: messages, system prompt, tool schemas, pending input;
    /// corrected by the ledger's calibration.
    #[must_use]
    pub fn used(&self) -> Tokens {
        self.ledger.corrected(self.total() + self.ledger.fixed())
    }

    /// How much the messages are over their budget.
    #[must_use]
    pub fn overflow(&self) -> Tokens {
        self.total() - self.ledger.budget()
    }

    /// All edits since the view was made.
    #[must_use]
    pub fn edits(&self) -> &[Edit] {
        &self.edits
    }

    fn fresh_key(&mut self) -> u64 {
        self.next_key += 1;
        self.next_key
    }
}

//! The working copy of what the model will see.

mod finish;
mod node;
mod pairs;
mod protected;
mod shrink;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::{
    Action, CallId, Component, Edit, Entry, EntryId, Error, ErrorKind, Facts, Manifest, Message,
    Projected, Projection, ProjectionKey, Result, Role, TokenLedger, Tokens,
};

pub use finish::Finished;
pub use node::{Node, NodeState};
pub use pairs::{MISSING_RESULT_NOTICE, check_pairs};
pub use shrink::{CONTEXT_LIMIT_TRUNCATION_NOTICE, MIDDLE_OMITTED_NOTICE};

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
/// together, and system messages, pinned ones, the newest user message and the tool call in
/// progress cannot be dropped. [`ContextView::finish`] keeps the rest.
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
    ledger: TokenLedger,
    nodes: Vec<Node>,
    gone: Vec<Node>,
    total: u64,
    result_total: u64,
    edits: Vec<Edit>,
    next_seq: u64,
    next_key: u64,
    /// How many of `nodes` are in each group.
    group_sizes: Vec<u32>,
    open: HashMap<CallId, u32>,
    synthetic: HashMap<CallId, u64>,
    newest_user: Option<u64>,
    in_progress: Option<u32>,
    sticky: bool,
    known: HashMap<EntryId, Projection>,
    fresh_projections: Vec<EntryId>,
    sent: usize,
    sent_total: u64,
    dirty: usize,
    edits_finished: usize,
}

impl ContextView {
    /// An empty view.
    #[must_use]
    pub fn new(ledger: TokenLedger) -> Self {
        Self {
            ledger,
            nodes: Vec::new(),
            gone: Vec::new(),
            total: 0,
            result_total: 0,
            edits: Vec::new(),
            next_seq: SEQ_STEP,
            next_key: 0,
            group_sizes: Vec::new(),
            open: HashMap::new(),
            synthetic: HashMap::new(),
            newest_user: None,
            in_progress: None,
            sticky: false,
            known: HashMap::new(),
            fresh_projections: Vec::new(),
            sent: 0,
            sent_total: 0,
            dirty: 0,
            edits_finished: 0,
        }
    }

    /// Gives the view the forms that were sent before, and has it keep new ones for
    /// [`ContextView::take_projections`]. Call it before appending.
    #[must_use]
    pub fn with_projections(mut self, projections: impl IntoIterator<Item = Projection>) -> Self {
        self.sticky = true;
        self.known.extend(projections.into_iter().map(|p| (p.key.entry.clone(), p)));
        self
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

    /// The first position that was appended since the last `finish`.
    #[must_use]
    pub fn fresh_from(&self) -> usize {
        self.sent
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

    /// Whether the node may never be dropped: system and pinned messages, the newest user message,
    /// the tool call in progress and its results.
    #[must_use]
    pub fn is_protected(&self, at: usize) -> bool {
        let node = &self.nodes[at];
        node.pinned || self.newest_user == Some(node.key) || self.in_progress == Some(node.group)
    }

    /// Adds the next message of the session. A result without its call, and a second result for
    /// one call, are recorded as dropped.
    pub fn append(&mut self, entry: Arc<Entry>) -> Result<()> {
        let (facts, tokens) = entry.measure(self.ledger.counter())?;
        let facts = facts.clone();
        let node = Node {
            pinned: facts.role == Role::System,
            group: self.fresh_group(),
            key: self.fresh_key(),
            seq: self.next_seq,
            entry,
            facts,
            form: None,
            state: NodeState::Kept,
            tokens,
            source_tokens: tokens,
            layer: None,
            reason: None,
        };
        self.next_seq += SEQ_STEP;
        if !node.facts.in_model_context {
            self.record_absent(node, FINISH.into(), "excluded from the model's context".into());
            return Ok(());
        }
        if let Some(known) = self.projection_for(&node)? {
            return self.append_projected(node, &known);
        }
        self.admit(node)
    }

    /// Takes a message out of the request, and with it the rest of its group. Returns the tokens
    /// freed: none where a node of the group is protected.
    pub fn drop(
        &mut self,
        at: usize,
        layer: impl Into<Cow<'static, str>>,
        reason: impl Into<Cow<'static, str>>,
    ) -> Tokens {
        let members = self.group_of(at);
        if members.iter().any(|&m| self.is_protected(m)) {
            return Tokens::ZERO;
        }
        let (layer, reason) = (layer.into(), reason.into());
        members.iter().map(|&m| self.drop_node(m, &layer, &reason)).sum()
    }

    /// Sends a message in another form. The form must make and answer the same calls.
    pub fn replace(
        &mut self,
        at: usize,
        form: Message,
        layer: impl Into<Cow<'static, str>>,
        reason: impl Into<Cow<'static, str>>,
    ) -> Result<()> {
        let node = &self.nodes[at];
        let same_calls = form.tool_calls().map(|c| &c.id).eq(node.facts.calls.iter());
        let same_results = form.tool_results().map(|r| &r.call_id).eq(node.facts.results.iter());
        if !same_calls || !same_results || form.role != node.facts.role {
            return Err(Error::new(
                ErrorKind::Contract,
                "a replaced message must keep its role, its tool calls and its results",
            )
            .with("entry", node.entry.id()));
        }
        if node.is_live() {
            self.set_form(at, form, layer.into(), reason.into());
        }
        Ok(())
    }

    /// Adds a message that is in no transcript before position `at`. It may hold neither tool calls
    /// nor results.
    pub fn insert(
        &mut self,
        at: usize,
        entry: Arc<Entry>,
        layer: impl Into<Cow<'static, str>>,
        reason: impl Into<Cow<'static, str>>,
    ) -> Result<()> {
        let (facts, _) = entry.measure(self.ledger.counter())?;
        if !facts.calls.is_empty() || !facts.results.is_empty() {
            return Err(Error::new(
                ErrorKind::Contract,
                "an inserted message may hold neither tool calls nor results",
            )
            .with("entry", entry.id()));
        }
        let group = self.fresh_group();
        self.insert_node(at, entry, group, layer.into(), reason.into())?;
        Ok(())
    }

    /// Keeps a message from being dropped from now on.
    pub fn pin(
        &mut self,
        at: usize,
        layer: impl Into<Cow<'static, str>>,
        reason: impl Into<Cow<'static, str>>,
    ) {
        let node = &mut self.nodes[at];
        if !node.pinned && node.is_live() {
            node.pinned = true;
            let (entry, tokens) = (node.entry.id().clone(), node.tokens);
            self.record(entry, layer.into(), Action::Pin, tokens, tokens, reason.into());
        }
    }

    /// All edits since the view was made.
    #[must_use]
    pub fn edits(&self) -> &[Edit] {
        &self.edits
    }

    /// The messages that go out, oldest first.
    pub fn messages(&self) -> Result<Vec<Arc<Message>>> {
        self.nodes.iter().filter(|n| n.is_live()).map(Node::message).collect()
    }

    /// Forms that were given since the view was made or last asked, to be stored.
    pub fn take_projections(&mut self) -> Vec<Projection> {
        let fresh = std::mem::take(&mut self.fresh_projections);
        fresh.iter().filter_map(|entry| self.known.get(entry)).cloned().collect()
    }

    /// What is in the request, entry by entry and by component.
    #[must_use]
    pub fn manifest(&self) -> Manifest {
        let mut all: Vec<&Node> = self.gone.iter().chain(&self.nodes).collect();
        all.sort_by_key(|node| node.seq);
        let mut layers = BTreeMap::new();
        for edit in &self.edits {
            *layers.entry(edit.layer.clone()).or_insert(0) += 1;
        }
        Manifest {
            window: self.ledger.window(),
            reserve: self.ledger.reserve(),
            limit: self.ledger.limit(),
            tokens: self.used(),
            unchanged_prefix: self.unchanged_prefix(),
            components: self.components(),
            entries: all.into_iter().map(Node::manifest_entry).collect(),
            layers,
        }
    }

    /// The request's size by component, in the order of the request.
    #[must_use]
    pub fn components(&self) -> Vec<Component> {
        let mut sums = [Tokens::ZERO; 5];
        for node in self.nodes.iter().filter(|n| n.is_live()) {
            let slot = match node.facts.role {
                Role::System => 0,
                Role::CompactionSummary | Role::BranchSummary => 1,
                _ if node.state == NodeState::Inserted => 2,
                _ if self.newest_user == Some(node.key) => 4,
                _ => 3,
            };
            sums[slot] += node.tokens;
        }
        let [system, summary, inserted, history, newest] = sums;
        [
            ("system", self.ledger.system() + system),
            ("tools", self.ledger.tools()),
            ("summary", summary),
            ("inserted", inserted),
            ("history", history),
            ("newest", newest),
            ("pending", self.ledger.pending()),
        ]
        .map(|(name, tokens)| Component { name, tokens })
        .to_vec()
    }

    /// Puts a node at the end, pairing its results with their calls.
    fn admit(&mut self, mut node: Node) -> Result<()> {
        if !self.claim_results(&mut node)? {
            return Ok(());
        }
        self.open_calls(&node)?;
        if node.is_user() {
            self.newest_user = Some(node.key);
        }
        if node.facts.role == Role::Assistant {
            self.in_progress = (!node.facts.calls.is_empty()).then_some(node.group);
        }
        self.count_in(&node);
        self.nodes.push(node);
        Ok(())
    }

    fn append_projected(&mut self, mut node: Node, known: &Projection) -> Result<()> {
        let (layer, reason) = (known.layer.clone().into(), known.reason.clone().into());
        match &known.form {
            Projected::Dropped => self.record_absent(node, layer, reason),
            Projected::Replaced(form) => {
                node.tokens = self.ledger.count(form);
                node.form = Some(form.clone());
                node.state = NodeState::Replaced;
                node.layer = Some(layer);
                node.reason = Some(reason);
                self.admit(node)?;
            }
        }
        Ok(())
    }

    /// The known form of a node, if its source is unchanged and the form keeps its calls.
    fn projection_for(&self, node: &Node) -> Result<Option<Projection>> {
        let Some(known) = self.known.get(node.entry.id()) else { return Ok(None) };
        if known.key.hash != node.entry.hash()? {
            return Ok(None);
        }
        let fits = match &known.form {
            Projected::Dropped => true,
            Projected::Replaced(form) => {
                let facts = Facts::of(form);
                facts.role == node.facts.role
                    && facts.calls == node.facts.calls
                    && facts.results == node.facts.results
            }
        };
        Ok(fits.then(|| known.clone()))
    }

    /// Records a message that never was in the request.
    fn record_absent(&mut self, mut node: Node, layer: Cow<'static, str>, reason: Cow<'static, str>) {
        let entry = node.entry.id().clone();
        let before = node.source_tokens;
        self.record(entry, layer.clone(), Action::Drop, before, Tokens::ZERO, reason.clone());
        node.state = NodeState::Dropped;
        node.layer = Some(layer);
        node.reason = Some(reason);
        self.gone.push(node);
    }

    fn drop_node(&mut self, at: usize, layer: &Cow<'static, str>, reason: &Cow<'static, str>) -> Tokens {
        let node = &mut self.nodes[at];
        if !node.is_live() {
            return Tokens::ZERO;
        }
        let inserted = node.state == NodeState::Inserted;
        node.state = NodeState::Dropped;
        node.layer = Some(layer.clone());
        node.reason = Some(reason.clone());
        let (entry, freed) = (node.entry.clone(), node.tokens);
        for call in &node.facts.calls {
            self.open.remove(call);
        }
        self.total -= freed.get();
        if !self.nodes[at].facts.results.is_empty() {
            self.result_total -= freed.get();
        }
        self.touch(at);
        self.record(entry.id().clone(), layer.clone(), Action::Drop, freed, Tokens::ZERO, reason.clone());
        if !inserted {
            self.remember(&entry, layer, reason, Projected::Dropped);
        }
        freed
    }

    fn set_form(&mut self, at: usize, form: Message, layer: Cow<'static, str>, reason: Cow<'static, str>) {
        let after = self.ledger.count(&form);
        let form = Arc::new(form);
        let node = &mut self.nodes[at];
        let (entry, before) = (node.entry.clone(), node.tokens);
        let inserted = node.state == NodeState::Inserted;
        if !inserted {
            node.state = NodeState::Replaced;
        }
        node.tokens = after;
        node.form = Some(form.clone());
        node.layer = Some(layer.clone());
        node.reason = Some(reason.clone());
        self.total = self.total - before.get() + after.get();
        if !node.facts.results.is_empty() {
            self.result_total = self.result_total - before.get() + after.get();
        }
        self.touch(at);
        self.record(entry.id().clone(), layer.clone(), Action::Replace, before, after, reason.clone());
        if !inserted {
            self.remember(&entry, &layer, &reason, Projected::Replaced(form));
        }
    }

    fn insert_node(
        &mut self,
        at: usize,
        entry: Arc<Entry>,
        group: u32,
        layer: Cow<'static, str>,
        reason: Cow<'static, str>,
    ) -> Result<u64> {
        let (facts, tokens) = entry.measure(self.ledger.counter())?;
        let facts = facts.clone();
        let before = at.checked_sub(1).map_or(0, |i| self.nodes[i].seq);
        let after = self.nodes.get(at).map_or(self.next_seq, |n| n.seq);
        let id = entry.id().clone();
        let key = self.fresh_key();
        let node = Node {
            pinned: facts.role == Role::System,
            group,
            key,
            seq: (before + 1).min(after),
            entry,
            facts,
            form: None,
            state: NodeState::Inserted,
            tokens,
            source_tokens: Tokens::ZERO,
            layer: Some(layer.clone()),
            reason: Some(reason.clone()),
        };
        self.count_in(&node);
        self.touch(at);
        if at < self.sent {
            self.sent += 1;
        }
        self.nodes.insert(at, node);
        self.record(id, layer, Action::Insert, Tokens::ZERO, tokens, reason);
        Ok(key)
    }

    fn fresh_key(&mut self) -> u64 {
        self.next_key += 1;
        self.next_key
    }

    fn fresh_group(&mut self) -> u32 {
        self.group_sizes.push(0);
        (self.group_sizes.len() - 1) as u32
    }

    /// Counts a node in that is about to be put among `nodes`.
    fn count_in(&mut self, node: &Node) {
        self.group_sizes[node.group as usize] += 1;
        self.total += node.tokens.get();
        if !node.facts.results.is_empty() {
            self.result_total += node.tokens.get();
        }
    }

    /// Notes that everything from `at` on differs from what was sent.
    fn touch(&mut self, at: usize) {
        self.dirty = self.dirty.min(at);
    }

    fn record(
        &mut self,
        entry: EntryId,
        layer: Cow<'static, str>,
        action: Action,
        before: Tokens,
        after: Tokens,
        reason: Cow<'static, str>,
    ) {
        self.edits.push(Edit { entry, layer, action, before, after, reason });
    }

    /// Keeps a form for the next process. An entry that cannot be read again has no hash, and so
    /// no form to keep.
    fn remember(
        &mut self,
        entry: &Arc<Entry>,
        layer: &Cow<'static, str>,
        reason: &Cow<'static, str>,
        form: Projected,
    ) {
        if !self.sticky {
            return;
        }
        let Ok(hash) = entry.hash() else { return };
        let id = entry.id().clone();
        let projection = Projection {
            key: ProjectionKey { entry: id.clone(), hash },
            layer: layer.clone().into_owned(),
            form,
            reason: reason.clone().into_owned(),
        };
        self.known.insert(id.clone(), projection);
        self.fresh_projections.push(id);
    }
}

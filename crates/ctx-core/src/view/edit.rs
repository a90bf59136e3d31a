//! The edits: how layers and `finish` change the request.

use std::borrow::Cow;
use std::sync::Arc;

use crate::{
    Action, Edit, Entry, EntryId, Error, ErrorKind, Message, NodeState, Projected, Result, Tokens,
};

use super::group::NodeHandle;
use super::node::Reason;
use super::{ContextView, Node, SEQ_STEP};

impl ContextView {
    /// Drops a message and the rest of its group from the request. Returns the tokens freed, net of
    /// messages that it restores: zero if the group is protected or the position does not exist.
    pub fn drop(
        &mut self,
        at: usize,
        layer: impl Into<Cow<'static, str>>,
        reason: impl Into<Cow<'static, str>>,
    ) -> Tokens {
        match self.nodes.get(at).map(|node| node.group) {
            Some(group) if !self.group_is_protected(group) => {
                self.drop_group(group, &Reason::new(layer, reason))
            }
            _ => Tokens::ZERO,
        }
    }

    /// Replaces a message with another form. The form must have the same role, calls and results. A
    /// dropped message stays dropped.
    pub fn replace(
        &mut self,
        at: usize,
        form: Message,
        layer: impl Into<Cow<'static, str>>,
        reason: impl Into<Cow<'static, str>>,
    ) -> Result<()> {
        if at >= self.nodes.len() {
            return Err(Error::new(ErrorKind::Contract, "invalid position in the view")
                .with("position", at)
                .with("messages", self.nodes.len()));
        }
        self.check_form(at, &form)?;
        if self.nodes[at].is_live() {
            self.set_form(at, form, &Reason::new(layer, reason));
        }
        Ok(())
    }

    /// Rejects a form with another role, or with other calls or results.
    pub(super) fn check_form(&self, at: usize, form: &Message) -> Result<()> {
        let node = &self.nodes[at];
        let same_calls = form.tool_calls().map(|c| &c.id).eq(node.outline.calls.iter());
        let same_results = form.tool_results().map(|r| &r.call_id).eq(node.outline.results.iter());
        if !same_calls || !same_results || form.role != node.outline.role {
            return Err(Error::new(
                ErrorKind::Contract,
                "a replaced message must keep its role, its tool calls and its results",
            )
            .with("entry", node.entry.id()));
        }
        Ok(())
    }

    /// Inserts a message that is not in the transcript before position `at`, or before the group
    /// around that position; past the end, it is appended. It must not contain tool calls or
    /// results. Returns its position.
    pub fn insert(
        &mut self,
        at: usize,
        entry: Arc<Entry>,
        layer: impl Into<Cow<'static, str>>,
        reason: impl Into<Cow<'static, str>>,
    ) -> Result<usize> {
        let (outline, tokens) = entry.measure(self.ledger.counter())?;
        if !outline.calls.is_empty() || !outline.results.is_empty() {
            return Err(Error::new(
                ErrorKind::Contract,
                "an inserted message cannot contain tool calls or results",
            )
            .with("entry", entry.id()));
        }
        let (outline, why) = (outline.clone(), Reason::new(layer, reason));
        let at = self.gap_at(at.min(self.nodes.len()));
        let place = NodeHandle { seq: self.seq_before(at), key: self.fresh_key() };
        let mut node = Node::new(entry, outline, tokens, place);
        node.group = self.fresh_group();
        node.make_inserted(why.clone());
        self.count_in(&node);
        self.touch(at);
        if at < self.sent.nodes {
            self.sent.nodes += 1;
        }
        let id = node.entry.id().clone();
        self.nodes.insert(at, node);
        self.record(id, Action::Insert, Tokens::ZERO, tokens, why);
        Ok(at)
    }

    /// Protects a message from being dropped.
    pub fn pin(
        &mut self,
        at: usize,
        layer: impl Into<Cow<'static, str>>,
        reason: impl Into<Cow<'static, str>>,
    ) {
        let Some(node) = self.nodes.get_mut(at) else { return };
        if !node.pinned && node.is_live() {
            node.pinned = true;
            self.groups[node.group as usize].pins += 1;
            let (entry, tokens) = (node.entry.id().clone(), node.tokens);
            self.record(entry, Action::Pin, tokens, tokens, Reason::new(layer, reason));
        }
    }

    /// Returns the last position up to `at` that is not between a call and its results.
    fn gap_at(&self, mut at: usize) -> usize {
        while at > 0 && at < self.nodes.len() && self.nodes[at - 1].group == self.nodes[at].group {
            at -= 1;
        }
        at
    }

    /// Returns a `seq` between the nodes around position `at`. Without a free number between them,
    /// the new node shares one.
    fn seq_before(&mut self, at: usize) -> u64 {
        let before = at.checked_sub(1).map_or(0, |i| self.nodes[i].seq);
        match self.nodes.get(at) {
            Some(after) => before + (after.seq - before) / 2,
            None => {
                let seq = self.next_seq;
                self.next_seq += SEQ_STEP;
                seq
            }
        }
    }

    pub(super) fn drop_group(&mut self, group: u32, why: &Reason) -> Tokens {
        let before = self.total();
        for at in self.positions_of(group) {
            self.drop_node(at, why);
        }
        before - self.total()
    }

    pub(super) fn drop_node(&mut self, at: usize, why: &Reason) -> Tokens {
        let node = &self.nodes[at];
        let in_transcript = node.is_live() && node.state != NodeState::Inserted;
        let entry = node.entry.clone();
        let freed = self.take_out(at, why);
        if in_transcript {
            self.projections.remember(&entry, why, Projected::Dropped, Vec::new());
        }
        freed
    }

    /// Removes a node from the request without recording the drop as its projection.
    pub(super) fn take_out(&mut self, at: usize, why: &Reason) -> Tokens {
        let node = &mut self.nodes[at];
        if !node.is_live() {
            return Tokens::ZERO;
        }
        node.state = NodeState::Dropped;
        node.why = Some(why.clone());
        if std::mem::take(&mut node.pinned) {
            self.groups[node.group as usize].pins -= 1;
        }
        let (entry, freed, group) = (node.entry.id().clone(), node.tokens, node.group);
        let key = node.key;
        let (calls, has_results) = (node.outline.calls.clone(), !node.outline.results.is_empty());
        for call in &calls {
            // A later call may have taken the id; that call stays open.
            if self.calls.open.get(call).is_some_and(|&g| self.root(g) == group) {
                self.calls.open.remove(call);
            }
        }
        self.subtract(freed, has_results);
        self.touch(at);
        self.record(entry, Action::Drop, freed, Tokens::ZERO, why.clone());
        self.forget_pointers_of(key);
        self.restore_pointers_to(key);
        freed
    }

    /// Sets another form of a live node. Unlike [`ContextView::replace`], it may remove calls and
    /// results.
    pub(super) fn set_form(&mut self, at: usize, form: Message, why: &Reason) {
        let form = Arc::new(form);
        let node = &mut self.nodes[at];
        let (before, had_results) = (node.tokens, !node.outline.results.is_empty());
        node.set_form(form.clone(), self.ledger.counter(), why);
        let (after, has_results) = (node.tokens, !node.outline.results.is_empty());
        let (entry, key) = (node.entry.clone(), node.key);
        let persists = node.synthetic || node.state != NodeState::Inserted;
        self.subtract(before, had_results);
        self.add(after, has_results);
        self.touch(at);
        let id = entry.id().clone();
        self.record(id, Action::Replace, before, after, why.clone());
        if persists {
            let points_to = self.points_to(key);
            self.projections.remember(&entry, why, Projected::Replaced(form), points_to);
        }
        self.restore_pointers_to(key);
    }

    /// Counts a node that is about to be added to `nodes`.
    pub(super) fn count_in(&mut self, node: &Node) {
        let group = &mut self.groups[node.group as usize];
        group.pins += u32::from(node.pinned);
        let place = NodeHandle { seq: node.seq, key: node.key };
        if group.members.is_empty() {
            // Most groups have one member, so no capacity for four is allocated.
            group.members = vec![place];
        } else {
            group.members.push(place);
        }
        self.add_up(node);
    }

    pub(super) fn add_up(&mut self, node: &Node) {
        self.add(node.tokens, !node.outline.results.is_empty());
    }

    pub(super) fn add(&mut self, tokens: Tokens, are_results: bool) {
        self.total += tokens.get();
        if are_results {
            self.result_total += tokens.get();
        }
    }

    pub(super) fn subtract(&mut self, tokens: Tokens, are_results: bool) {
        self.total -= tokens.get();
        if are_results {
            self.result_total -= tokens.get();
        }
    }

    /// Records that everything from `at` on differs from the last sent request.
    pub(super) fn touch(&mut self, at: usize) {
        self.sent.dirty = self.sent.dirty.min(at);
    }

    pub(super) fn record(
        &mut self,
        entry: EntryId,
        action: Action,
        before: Tokens,
        after: Tokens,
        why: Reason,
    ) {
        let Reason { layer, reason } = why;
        self.edits.push(Edit { entry, layer, action, before, after, reason });
    }
}

//! The edits: how layers and `finish` change what goes out.

use std::borrow::Cow;
use std::sync::Arc;

use crate::{Action, Edit, Entry, EntryId, Error, ErrorKind, Message, Projected, Result, Tokens};

use super::group::Place;
use super::node::Why;
use super::{ContextView, Node, NodeState, SEQ_STEP};

impl ContextView {
    /// Takes a message out of the request, and with it the rest of its group. Returns the tokens
    /// freed: none where the group is protected, or where there is no such position.
    pub fn drop(
        &mut self,
        at: usize,
        layer: impl Into<Cow<'static, str>>,
        reason: impl Into<Cow<'static, str>>,
    ) -> Tokens {
        match self.nodes.get(at).map(|node| node.group) {
            Some(group) if !self.group_is_protected(group) => {
                self.drop_group(group, &Why::new(layer, reason))
            }
            _ => Tokens::ZERO,
        }
    }

    /// Sends a message in another form. The form must keep its role, and make and answer the same
    /// calls. A dropped message stays dropped.
    pub fn replace(
        &mut self,
        at: usize,
        form: Message,
        layer: impl Into<Cow<'static, str>>,
        reason: impl Into<Cow<'static, str>>,
    ) -> Result<()> {
        if at >= self.nodes.len() {
            return Err(Error::new(ErrorKind::Contract, "no message at this position of the view")
                .with("position", at)
                .with("messages", self.nodes.len()));
        }
        self.check_form(at, &form)?;
        if self.nodes[at].is_live() {
            self.set_form(at, form, &Why::new(layer, reason));
        }
        Ok(())
    }

    /// Refuses a form of another role, or with other calls or results.
    pub(super) fn check_form(&self, at: usize, form: &Message) -> Result<()> {
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
        Ok(())
    }

    /// Adds a message that is in no transcript before position `at`, or before the group that
    /// position is inside of; beyond the end, at the end. It may hold neither tool calls nor
    /// results. Returns where it is.
    pub fn insert(
        &mut self,
        at: usize,
        entry: Arc<Entry>,
        layer: impl Into<Cow<'static, str>>,
        reason: impl Into<Cow<'static, str>>,
    ) -> Result<usize> {
        let (facts, tokens) = entry.measure(self.ledger.counter())?;
        if !facts.calls.is_empty() || !facts.results.is_empty() {
            return Err(Error::new(
                ErrorKind::Contract,
                "an inserted message may hold neither tool calls nor results",
            )
            .with("entry", entry.id()));
        }
        let (facts, why) = (facts.clone(), Why::new(layer, reason));
        let at = self.gap_at(at.min(self.nodes.len()));
        let place = Place { seq: self.seq_before(at), key: self.fresh_key() };
        let mut node = Node::new(entry, facts, tokens, place);
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

    /// Keeps a message from being dropped from now on.
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
            self.record(entry, Action::Pin, tokens, tokens, Why::new(layer, reason));
        }
    }

    /// The last position up to `at` that does not lie between a call and its results.
    fn gap_at(&self, mut at: usize) -> usize {
        while at > 0 && at < self.nodes.len() && self.nodes[at - 1].group == self.nodes[at].group {
            at -= 1;
        }
        at
    }

    /// A place between the nodes around position `at`. When there is no number left between
    /// theirs, the new node shares one.
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

    pub(super) fn drop_group(&mut self, group: u32, why: &Why) -> Tokens {
        self.positions_of(group).into_iter().map(|at| self.drop_node(at, why)).sum()
    }

    pub(super) fn drop_node(&mut self, at: usize, why: &Why) -> Tokens {
        let node = &self.nodes[at];
        let in_transcript = node.is_live() && node.state != NodeState::Inserted;
        let entry = node.entry.clone();
        let freed = self.take_out(at, why);
        if in_transcript {
            self.forms.remember(&entry, why, Projected::Dropped);
        }
        freed
    }

    /// Takes a node out of the request without making that its form for good.
    pub(super) fn take_out(&mut self, at: usize, why: &Why) -> Tokens {
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
        let (calls, has_results) = (node.facts.calls.clone(), !node.facts.results.is_empty());
        for call in &calls {
            // The id may have been taken by a later call, which stays open.
            if self.calls.open.get(call).is_some_and(|&g| self.root(g) == group) {
                self.calls.open.remove(call);
            }
        }
        self.subtract(freed, has_results);
        self.touch(at);
        self.record(entry, Action::Drop, freed, Tokens::ZERO, why.clone());
        freed
    }

    /// Gives a live node another form. Unlike [`ContextView::replace`] it may make and answer
    /// fewer calls.
    pub(super) fn set_form(&mut self, at: usize, form: Message, why: &Why) {
        let form = Arc::new(form);
        let node = &mut self.nodes[at];
        let (before, had_results) = (node.tokens, !node.facts.results.is_empty());
        node.set_form(form.clone(), self.ledger.counter(), why);
        let (after, has_results) = (node.tokens, !node.facts.results.is_empty());
        let entry = node.entry.clone();
        let sticks = node.synthetic || node.state != NodeState::Inserted;
        self.subtract(before, had_results);
        self.add(after, has_results);
        self.touch(at);
        let id = entry.id().clone();
        self.record(id, Action::Replace, before, after, why.clone());
        if sticks {
            self.forms.remember(&entry, why, Projected::Replaced(form));
        }
    }

    /// Counts a node in that is about to be put among `nodes`.
    pub(super) fn count_in(&mut self, node: &Node) {
        let group = &mut self.groups[node.group as usize];
        group.pins += u32::from(node.pinned);
        let place = Place { seq: node.seq, key: node.key };
        if group.members.is_empty() {
            // Most groups have one member: no room for four.
            group.members = vec![place];
        } else {
            group.members.push(place);
        }
        self.add_up(node);
    }

    pub(super) fn add_up(&mut self, node: &Node) {
        self.add(node.tokens, !node.facts.results.is_empty());
    }

    fn add(&mut self, tokens: Tokens, are_results: bool) {
        self.total += tokens.get();
        if are_results {
            self.result_total += tokens.get();
        }
    }

    fn subtract(&mut self, tokens: Tokens, are_results: bool) {
        self.total -= tokens.get();
        if are_results {
            self.result_total -= tokens.get();
        }
    }

    /// Notes that everything from `at` on differs from what was sent.
    pub(super) fn touch(&mut self, at: usize) {
        self.sent.dirty = self.sent.dirty.min(at);
    }

    pub(super) fn record(
        &mut self,
        entry: EntryId,
        action: Action,
        before: Tokens,
        after: Tokens,
        why: Why,
    ) {
        let Why { layer, reason } = why;
        self.edits.push(Edit { entry, layer, action, before, after, reason });
    }
}

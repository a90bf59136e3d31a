//! Forms that point to other messages of the request.
//!
//! A form may point to a message sent as recorded, or to the recorded text that is left in a form with
//! pointers of the same layer: when that one is sent as recorded again, the text is still there.

use std::borrow::Cow;

use crate::{Action, Message, NodeState, Projected, ProjectionKey, Result};

use super::ContextView;
use super::node::Reason;

const RESTORED: &str = "a message to which its form pointed changed or left the request";

/// A node whose form points to another node.
#[derive(Debug)]
pub(super) struct Pointer {
    /// The key of the node.
    pub(super) from: u64,
    /// The key of the node to which it points.
    to: u64,
    target: ProjectionKey,
}

impl ContextView {
    /// Replaces a message with a form that points to the messages at the positions `to`. When one
    /// of them changes or leaves the request, the message is sent as recorded again.
    pub fn replace_with_pointers(
        &mut self,
        at: usize,
        form: Message,
        to: &[usize],
        layer: impl Into<Cow<'static, str>>,
        reason: impl Into<Cow<'static, str>>,
    ) -> Result<()> {
        if let Some(from) = self.nodes.get(at).filter(|n| n.is_live()).map(|node| node.key) {
            self.check_form(at, &form)?;
            let pointer = |node: &super::Node| {
                let (entry, hash) = (node.entry.id().clone(), node.entry.hash()?);
                Ok(Pointer { from, to: node.key, target: ProjectionKey { entry, hash } })
            };
            let nodes = to.iter().filter_map(|&to| self.nodes.get(to));
            let pointers: Result<Vec<_>> = nodes.map(pointer).collect();
            self.pointers.extend(pointers?);
        }
        self.replace(at, form, layer, reason)
    }

    /// Whether the form of the node points to other messages.
    #[must_use]
    pub fn has_pointers(&self, at: usize) -> bool {
        self.pointers.iter().any(|pointer| pointer.from == self.nodes[at].key)
    }

    /// Returns the messages to which a node points.
    pub(super) fn points_to(&self, key: u64) -> Vec<ProjectionKey> {
        let own = self.pointers.iter().filter(|pointer| pointer.from == key);
        own.map(|pointer| pointer.target.clone()).collect()
    }

    /// Whether a form by `layer` may point to the node.
    #[must_use]
    pub fn is_target(&self, at: usize, layer: &str) -> bool {
        let node = &self.nodes[at];
        node.state == NodeState::Kept
            || node.is_live() && node.layer() == Some(layer) && self.has_pointers(at)
    }

    /// Whether all these messages can be pointed to.
    pub(super) fn are_targets(&self, targets: &[ProjectionKey], layer: &str) -> bool {
        targets.iter().all(|target| self.target(target, layer).is_some())
    }

    fn target(&self, target: &ProjectionKey, layer: &str) -> Option<u64> {
        let at = self.nodes.iter().rposition(|node| *node.entry.id() == target.entry)?;
        let node = &self.nodes[at];
        let is_same = node.entry.hash().is_ok_and(|hash| hash == target.hash);
        (is_same && self.is_target(at, layer)).then_some(node.key)
    }

    /// Records that the node `from` points to these messages.
    pub(super) fn add_pointers(&mut self, from: u64, targets: &[ProjectionKey], layer: &str) {
        for target in targets {
            if let Some(to) = self.target(target, layer) {
                self.pointers.push(Pointer { from, to, target: target.clone() });
            }
        }
    }

    /// Restores the messages that point to a node that changed or left the request.
    pub(super) fn restore_pointers_to(&mut self, key: u64) {
        while let Some(pointer) = self.pointers.iter().find(|pointer| pointer.to == key) {
            let from = pointer.from;
            self.forget_pointers_of(from);
            if let Some(at) = self.nodes.iter().position(|node| node.key == from) {
                self.restore(at);
            }
        }
    }

    /// Forgets to what a node points. Returns whether it pointed to anything.
    pub(super) fn forget_pointers_of(&mut self, key: u64) -> bool {
        let before = self.pointers.len();
        self.pointers.retain(|pointer| pointer.from != key);
        self.pointers.len() < before
    }

    /// Lets a node be sent as recorded.
    pub(super) fn restore(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        // The entry was measured when it was appended.
        let Ok((outline, tokens)) = node.entry.measure(self.ledger.counter()) else { return };
        let before = node.tokens;
        node.outline = outline.clone();
        (node.form, node.state, node.tokens) = (None, NodeState::Kept, tokens);
        let layer = node.why.take().map_or(Cow::Borrowed(super::FINISH), |why| why.layer);
        let why = Reason::new(layer, RESTORED);
        node.why = Some(why.clone());
        let (entry, has_results) = (node.entry.clone(), !node.outline.results.is_empty());
        self.subtract(before, has_results);
        self.add(tokens, has_results);
        self.touch(at);
        self.record(entry.id().clone(), Action::Replace, before, tokens, why.clone());
        // The next process must not send the form with pointers again.
        if let Ok(message) = entry.message() {
            let recorded = Projected::Replaced(message);
            self.projections.remember(&entry, &why, recorded, Vec::new());
        }
    }
}

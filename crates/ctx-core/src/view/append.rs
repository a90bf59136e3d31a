//! Appending the session's messages to the view.

use std::collections::HashSet;
use std::sync::Arc;

use crate::{
    Action, Block, CallId, Entry, Message, MessageOutline, NodeState, Projected, Result, Role,
    Tokens,
};

use super::group::NodeHandle;
use super::node::Reason;
use super::pairs::Claims;
use super::{ContextView, NewestUser, Node, PendingDrop, SEQ_STEP};

/// The reason for dropping a tool result that answers no call.
pub const ORPHANED_RESULT: &str = "tool result without its call, or a second one for it";
const TAKEN_ID: &str = "duplicate tool call id in the message";
const EXCLUDED: &str = "excluded from the model's context";

impl ContextView {
    /// Appends the next message of the session. A result without its call, and a second result for
    /// one call, are recorded as dropped.
    pub fn append(&mut self, entry: Arc<Entry>) -> Result<()> {
        let (outline, tokens) = entry.measure(self.ledger.counter())?;
        let outline = outline.clone();
        let known = self.projections.lookup(&entry, &outline)?;
        let known = known.filter(|known| self.are_targets(&known.points_to, &known.layer));
        let place = NodeHandle { seq: self.next_seq, key: self.fresh_key() };
        self.next_seq += SEQ_STEP;
        let mut node = Node::new(entry, outline, tokens, place);
        if !node.outline.in_model_context {
            self.record_absent(node, Reason::finish(EXCLUDED));
            return Ok(());
        }
        self.begin_round(&node.outline.role);
        node.round = self.round;
        let Some(known) = known else { return self.admit(node, None) };
        self.add_pointers(node.key, &known.points_to, &known.layer);
        let why = Reason::new(known.layer, known.reason);
        match known.form {
            Projected::Replaced(form) => {
                self.take_form(&mut node, form, why);
                self.admit(node, None)
            }
            Projected::Dropped if self.comes_protected(&node.outline) => {
                self.admit(node, Some(why))
            }
            Projected::Dropped => {
                self.record_absent(node, why);
                Ok(())
            }
        }
    }

    /// Appends a node and pairs its results with their calls. A node that was dropped earlier
    /// (`due`) is dropped again as soon as nothing protects it: a session may be opened at an
    /// earlier message, which is then the newest.
    fn admit(&mut self, mut node: Node, due: Option<Reason>) -> Result<()> {
        let mut claims = self.claims(&node.outline);
        // It must not cause the drop of a group that was not dropped with it.
        if due.is_some() && !claims.home.is_some_and(|home| self.is_due(home)) {
            claims = Claims::default();
        }
        if claims.ids.is_empty() && !node.outline.results.is_empty() && !node.outline.has_content {
            self.record_absent(node, Reason::finish(ORPHANED_RESULT));
            return Ok(());
        }
        if needs_strip(&node.outline, &claims) {
            self.strip(&mut node, &claims)?;
        }
        node.group = self.settle_claims(&claims);
        self.open_calls(&node);
        if node.is_user() {
            self.newest_user = Some(NewestUser { key: node.key, group: node.group });
            self.drop_what_is_due();
        }
        if node.outline.role == Role::Assistant && !node.outline.calls.is_empty() {
            self.groups[node.group as usize].in_progress = true;
            self.in_progress.push(node.group);
        }
        // A result is dropped together with its call.
        if let Some(why) = due
            && (node.outline.results.is_empty() || node.is_user())
        {
            self.due.push(PendingDrop { group: node.group, why });
        }
        self.count_in(&node);
        self.nodes.push(node);
        Ok(())
    }

    /// Whether a message would be protected if it were appended now.
    fn comes_protected(&self, outline: &MessageOutline) -> bool {
        let in_progress = |id| self.owner(id).is_some_and(|g| self.groups[g as usize].in_progress);
        (outline.role == Role::User && outline.has_content)
            || (outline.role == Role::Assistant && !outline.calls.is_empty())
            || outline.results.iter().any(in_progress)
    }

    /// Starts a new answer if an assistant message follows anything else; the calls of the previous
    /// answer are then no longer in progress. Consecutive assistant messages belong to one answer:
    /// some agents record each parallel call as a separate message.
    fn begin_round(&mut self, role: &Role) {
        let answering = *role == Role::Assistant;
        if !answering || !self.answering {
            self.round += 1;
        }
        if answering && !self.answering {
            for group in std::mem::take(&mut self.in_progress) {
                let group = self.root(group);
                self.groups[group as usize].in_progress = false;
            }
            self.drop_what_is_due();
        }
        self.answering = answering;
    }

    fn is_due(&self, group: u32) -> bool {
        self.due.iter().any(|due| self.root(due.group) == group)
    }

    fn drop_what_is_due(&mut self) {
        for due in std::mem::take(&mut self.due) {
            let group = self.root(due.group);
            if self.group_is_protected(group) {
                self.due.push(due);
            } else {
                self.drop_group(group, &due.why);
            }
        }
    }

    /// Removes results that answer no call, and calls whose ids are already in use.
    fn strip(&mut self, node: &mut Node, claims: &Claims) -> Result<()> {
        if self.forget_pointers_of(node.key) {
            node.form = None;
        }
        let mut message = Message::clone(&*node.message()?);
        let (mut answered, mut called) = (HashSet::new(), HashSet::new());
        let mut reason = ORPHANED_RESULT;
        message.blocks.retain(|block| match block {
            Block::ToolResult(result) => {
                claims.ids.contains(&result.call_id) && answered.insert(result.call_id.clone())
            }
            Block::ToolCall(call) => {
                let stays = called.insert(call.id.clone());
                if !stays {
                    reason = TAKEN_ID;
                }
                stays
            }
            _ => true,
        });
        self.take_form(node, Arc::new(message), Reason::finish(reason));
        Ok(())
    }

    /// Sets the form of a node that is not in the view yet.
    fn take_form(&mut self, node: &mut Node, form: Arc<Message>, why: Reason) {
        let before = node.tokens;
        node.set_form(form, self.ledger.counter(), &why);
        let entry = node.entry.id().clone();
        self.record(entry, Action::Replace, before, node.tokens, why);
    }

    /// Records a message that was never in the request.
    fn record_absent(&mut self, mut node: Node, why: Reason) {
        node.state = NodeState::Dropped;
        node.why = Some(why.clone());
        let (entry, before) = (node.entry.id().clone(), node.source_tokens);
        self.record(entry, Action::Drop, before, Tokens::ZERO, why);
        self.dropped.push(node);
    }
}

/// Whether a message contains results that answer no call, or two calls with one id.
fn needs_strip(outline: &MessageOutline, claims: &Claims) -> bool {
    let repeats = |ids: &[CallId]| {
        let mut seen = HashSet::new();
        ids.len() > 1 && ids.iter().any(|id| !seen.insert(id))
    };
    claims.ids.len() < outline.results.len() || repeats(&outline.calls)
}

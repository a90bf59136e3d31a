//! How the session's messages come into the view.

use std::collections::HashSet;
use std::sync::Arc;

use crate::{Action, Block, Entry, Facts, Message, Projected, Result, Role, Tokens};

use super::group::Place;
use super::node::Why;
use super::pairs::Claims;
use super::{ContextView, Due, NewestUser, Node, NodeState, SEQ_STEP};

/// Why a tool result does not go out that answers nothing.
pub const ORPHANED_RESULT: &str = "tool result without its call, or a second one for it";
const TAKEN_ID: &str = "tool call under an id that another call of the message has";
const EXCLUDED: &str = "excluded from the model's context";

impl ContextView {
    /// Adds the next message of the session. A result without its call, and a second result for
    /// one call, are recorded as dropped.
    pub fn append(&mut self, entry: Arc<Entry>) -> Result<()> {
        let (facts, tokens) = entry.measure(self.ledger.counter())?;
        let facts = facts.clone();
        let known = self.forms.lookup(&entry, &facts)?;
        let place = Place { seq: self.next_seq, key: self.fresh_key() };
        self.next_seq += SEQ_STEP;
        let mut node = Node::new(entry, facts, tokens, place);
        if !node.facts.in_model_context {
            self.record_absent(node, Why::finish(EXCLUDED));
            return Ok(());
        }
        self.begin_round(&node.facts.role);
        node.round = self.round;
        let Some(known) = known else { return self.admit(node, None) };
        let why = Why::new(known.layer, known.reason);
        match known.form {
            Projected::Replaced(form) => {
                self.take_form(&mut node, form, why);
                self.admit(node, None)
            }
            Projected::Dropped if self.comes_protected(&node.facts) => self.admit(node, Some(why)),
            Projected::Dropped => {
                self.record_absent(node, why);
                Ok(())
            }
        }
    }

    /// Puts a node at the end, pairing its results with their calls. Where the node was dropped
    /// in the past (`due`), it goes again as soon as nothing protects it: a session may be opened
    /// at an earlier message, which is then the newest.
    fn admit(&mut self, mut node: Node, due: Option<Why>) -> Result<()> {
        let mut claims = self.claims(&node.facts);
        // It may not take a group along that was not dropped with it.
        if due.is_some() && !claims.home.is_some_and(|home| self.is_due(home)) {
            claims = Claims::default();
        }
        if claims.ids.is_empty() && !node.facts.results.is_empty() && !node.facts.has_content {
            self.record_absent(node, Why::finish(ORPHANED_RESULT));
            return Ok(());
        }
        if needs_strip(&node.facts, &claims) {
            self.strip(&mut node, &claims)?;
        }
        node.group = self.settle_claims(&claims);
        self.open_calls(&node);
        if node.is_user() {
            self.newest_user = Some(NewestUser { key: node.key, group: node.group });
            self.drop_what_is_due();
        }
        if node.facts.role == Role::Assistant && !node.facts.calls.is_empty() {
            self.groups[node.group as usize].in_progress = true;
            self.in_progress.push(node.group);
        }
        // A result goes when its call goes.
        if let Some(why) = due
            && (node.facts.results.is_empty() || node.is_user())
        {
            self.due.push(Due { group: node.group, why });
        }
        self.count_in(&node);
        self.nodes.push(node);
        Ok(())
    }

    /// Whether a message would be protected if it came now.
    fn comes_protected(&self, facts: &Facts) -> bool {
        let in_progress = |id| self.owner(id).is_some_and(|g| self.groups[g as usize].in_progress);
        (facts.role == Role::User && facts.has_content)
            || (facts.role == Role::Assistant && !facts.calls.is_empty())
            || facts.results.iter().any(in_progress)
    }

    /// An assistant message after anything else is a new answer, and the calls of the last one are
    /// no longer in progress. One right after another belongs to the same answer: some agents
    /// record each parallel call as a message of its own.
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

    /// Takes out the results that answer nothing and the calls whose ids are taken.
    fn strip(&mut self, node: &mut Node, claims: &Claims) -> Result<()> {
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
        self.take_form(node, Arc::new(message), Why::finish(reason));
        Ok(())
    }

    /// Gives a node that is not in the view yet the form it comes in with.
    fn take_form(&mut self, node: &mut Node, form: Arc<Message>, why: Why) {
        let before = node.tokens;
        node.set_form(form, self.ledger.counter(), &why);
        let entry = node.entry.id().clone();
        self.record(entry, Action::Replace, before, node.tokens, why);
    }

    /// Records a message that never was in the request.
    fn record_absent(&mut self, mut node: Node, why: Why) {
        node.state = NodeState::Dropped;
        node.why = Some(why.clone());
        let (entry, before) = (node.entry.id().clone(), node.source_tokens);
        self.record(entry, Action::Drop, before, Tokens::ZERO, why);
        self.gone.push(node);
    }
}

/// Whether a message holds results that answer nothing, or makes two calls under one id.
fn needs_strip(facts: &Facts, claims: &Claims) -> bool {
    let mut seen = HashSet::new();
    claims.ids.len() < facts.results.len() || facts.calls.iter().any(|id| !seen.insert(id))
}

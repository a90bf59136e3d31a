//! Rule 1: a tool call and its results stay together, or go together.

use std::collections::HashSet;
use std::sync::Arc;

use crate::{
    Block, CallId, Entry, EntryId, Facts, Message, Result, Role, ToolResult,
};

use super::{ContextView, FINISH, Node, NodeState};

/// Stands in for a result that the transcript lacks.
pub const MISSING_RESULT_NOTICE: &str =
    "[ctx] no result of this tool call is in the session's history; the call may not have run";

const NO_CALL: &str = "tool result without its call, or a second one for it";

impl ContextView {
    /// Ties a node's results to the calls before it. Returns false, having recorded why, if
    /// nothing of the node is left to send.
    pub(super) fn claim_results(&mut self, node: &mut Node) -> Result<bool> {
        if node.facts.results.is_empty() {
            return Ok(true);
        }
        let mut claimed: HashSet<CallId> = HashSet::new();
        let mut groups: Vec<u32> = Vec::new();
        let mut orphans = false;
        for id in &node.facts.results {
            match self.open.remove(id).or_else(|| self.take_synthetic(id)) {
                Some(group) => {
                    claimed.insert(id.clone());
                    if !groups.contains(&group) {
                        groups.push(group);
                    }
                }
                None => orphans = true,
            }
        }
        if claimed.is_empty() && !node.facts.has_content {
            self.record_absent(node.clone(), FINISH.into(), NO_CALL.into());
            return Ok(false);
        }
        if orphans {
            self.strip_orphans(node, claimed)?;
        }
        if let Some((&first, rest)) = groups.split_first() {
            node.group = first;
            if !rest.is_empty() {
                for other in self.nodes.iter_mut().filter(|n| rest.contains(&n.group)) {
                    self.group_sizes[other.group as usize] -= 1;
                    self.group_sizes[first as usize] += 1;
                    other.group = first;
                }
                if self.in_progress.is_some_and(|g| rest.contains(&g)) {
                    self.in_progress = Some(first);
                }
                for group in self.open.values_mut().filter(|g| rest.contains(g)) {
                    *group = first;
                }
            }
        }
        Ok(true)
    }

    /// Notes the calls a node makes. A call whose id is already waiting for a result closes the
    /// older one, so that an id names one call at a time.
    pub(super) fn open_calls(&mut self, node: &Node) -> Result<()> {
        for id in &node.facts.calls {
            if let Some(&group) = self.open.get(id)
                && group != node.group
            {
                self.settle(id.clone(), group)?;
            }
            self.synthetic.remove(id);
            self.open.insert(id.clone(), node.group);
        }
        Ok(())
    }

    /// Gives every call that is still without one a synthetic error result.
    pub(super) fn settle_open_calls(&mut self) -> Result<()> {
        if self.open.is_empty() {
            return Ok(());
        }
        let mut open: Vec<(CallId, u32)> =
            self.open.iter().map(|(id, group)| (id.clone(), *group)).collect();
        open.sort_unstable();
        for (id, group) in open {
            self.settle(id, group)?;
        }
        Ok(())
    }

    fn settle(&mut self, id: CallId, group: u32) -> Result<()> {
        self.open.remove(&id);
        let Some(last) = self.nodes.iter().rposition(|n| n.group == group && n.is_live()) else {
            return Ok(());
        };
        let result = ToolResult {
            call_id: id.clone(),
            name: None,
            content: vec![Block::text(MISSING_RESULT_NOTICE)],
            is_error: true,
        };
        let message = Message::new(Role::ToolResult, vec![Block::ToolResult(result)]);
        let entry_id: EntryId = format!("synthetic:{id}").into();
        let entry = Arc::new(Entry::held(entry_id, message));
        let key =
            self.insert_node(last + 1, entry, group, FINISH.into(), "result missing".into())?;
        self.synthetic.insert(id, key);
        Ok(())
    }

    /// The real result of a call has come after all: its stand-in goes, and the call is open again
    /// for it.
    fn take_synthetic(&mut self, id: &CallId) -> Option<u32> {
        let key = self.synthetic.remove(id)?;
        let at = self.nodes.iter().rposition(|n| n.key == key && n.is_live())?;
        let group = self.nodes[at].group;
        self.drop_node(at, &FINISH.into(), &"the result came late".into());
        Some(group)
    }

    fn strip_orphans(&mut self, node: &mut Node, mut claimed: HashSet<CallId>) -> Result<()> {
        let mut message = Message::clone(&*node.message()?);
        message.blocks.retain(|block| match block {
            Block::ToolResult(result) => claimed.remove(&result.call_id),
            _ => true,
        });
        let before = node.tokens;
        node.tokens = self.ledger.count(&message);
        node.facts = Facts::of(&message);
        node.form = Some(Arc::new(message));
        node.state = NodeState::Replaced;
        node.layer = Some(FINISH.into());
        node.reason = Some(NO_CALL.into());
        let entry = node.entry.id().clone();
        self.record(entry, FINISH.into(), crate::Action::Replace, before, node.tokens, NO_CALL.into());
        Ok(())
    }

    /// The positions of all nodes that go with the one at `at`, in order.
    pub(super) fn group_of(&self, at: usize) -> Vec<usize> {
        let group = self.nodes[at].group;
        let size = self.group_sizes[group as usize] as usize;
        let mut members = vec![at];
        let mut step = 1;
        while members.len() < size && (step <= at || at + step < self.nodes.len()) {
            let sides = [at.checked_sub(step), Some(at + step)];
            members.extend(
                sides.into_iter().flatten().filter(|&m| self.nodes.get(m).is_some_and(|n| n.group == group)),
            );
            step += 1;
        }
        members.sort_unstable();
        members
    }
}

/// Checks rule 1 over messages that are about to go out: every result follows its call, no call is
/// answered twice, none is left unanswered. The error says which id and what is wrong.
pub fn check_pairs<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Result<(), String> {
    let mut open: HashSet<CallId> = HashSet::new();
    for message in messages {
        for result in message.tool_results() {
            if !open.remove(&result.call_id) {
                return Err(format!("result {} has no open call before it", result.call_id));
            }
        }
        for call in message.tool_calls() {
            open.insert(call.id.clone());
        }
    }
    match open.into_iter().next() {
        None => Ok(()),
        Some(id) => Err(format!("call {id} has no result")),
    }
}

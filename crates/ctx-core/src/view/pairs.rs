//! Rule 1: a tool call and its results are kept or dropped together.

use std::collections::{HashMap, HashSet};

use crate::{CallId, Message, MessageOutline, Role};

use super::group::NodeHandle;
use super::node::Reason;
use super::{ContextView, Node};

/// The tool calls of a view, by state.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Calls that wait for their result, with their groups.
    pub(super) open: HashMap<CallId, u32>,
    /// Calls that will get no result, because a later call took their id.
    pub(super) given_up: Vec<(CallId, u32)>,
    /// Synthetic results whose real results may still arrive.
    pub(super) synthetic: HashMap<CallId, NodeHandle>,
    /// The `seq` of the first group whose nodes are not adjacent.
    pub(super) scattered_from: Option<u64>,
}

/// The results of a message that answer a call.
#[derive(Debug, Default)]
pub(super) struct Claims {
    pub(super) ids: HashSet<CallId>,
    /// The group they join.
    pub(super) home: Option<u32>,
    /// The position of the first group to merge if the message answers calls of several groups.
    merge_from: Option<usize>,
}

impl ContextView {
    /// Finds the results that answer an earlier call. A message can follow only one group: calls of
    /// several groups are all answered only if they are one answer in several messages; otherwise
    /// only the calls of the newest group are. A message that makes calls answers none.
    pub(super) fn claims(&self, outline: &MessageOutline) -> Claims {
        if outline.results.is_empty() || !outline.calls.is_empty() {
            return Claims::default();
        }
        if let [id] = &*outline.results {
            let home = self.owner(id);
            let ids = home.map(|_| id.clone()).into_iter().collect();
            return Claims { ids, home, merge_from: None };
        }
        let mut owners: HashMap<&CallId, u32> = HashMap::new();
        for id in &outline.results {
            if let Some(group) = self.owner(id) {
                owners.insert(id, group);
            }
        }
        let groups: HashSet<u32> = owners.values().copied().collect();
        let place = |group: &u32| self.groups[*group as usize].members.first().map(|m| m.seq);
        let Some(newest) = groups.iter().copied().max_by_key(place) else {
            return Claims::default();
        };
        let merge_from = if groups.len() > 1 { self.answer_of(&groups) } else { None };
        let ids = owners.into_iter().filter(|&(_, group)| merge_from.is_some() || group == newest);
        let ids = ids.map(|(id, _)| id.clone()).collect();
        Claims { ids, home: Some(newest), merge_from }
    }

    /// Returns the first position of `groups` if all of them belong to the answer right before the
    /// message being appended. Later changes to the messages in between are ignored: the outcome
    /// must depend only on the session.
    fn answer_of(&self, groups: &HashSet<u32>) -> Option<usize> {
        let mut start = None;
        for &group in groups {
            let of = &self.groups[group as usize];
            let at = self.position(*of.members.first()?)?;
            if of.gave_up || self.nodes[at].round + 1 != self.round {
                return None;
            }
            start = Some(start.map_or(at, |start: usize| start.min(at)));
        }
        start
    }

    /// Closes the calls that were answered. Returns the group of the message that answers them: a
    /// new one if it answers none.
    pub(super) fn settle_claims(&mut self, claims: &Claims) -> u32 {
        let Some(home) = claims.home else { return self.fresh_group() };
        let home = match claims.merge_from {
            Some(start) => self.merge_from(start),
            None => home,
        };
        for id in &claims.ids {
            if self.calls.open.remove(id).is_none() {
                self.take_synthetic(id);
            }
        }
        let in_place = self.nodes.last().is_some_and(|n| n.group == home && !n.synthetic);
        if !in_place || claims.merge_from.is_some() {
            self.scatter(home);
        }
        home
    }

    /// Records that the nodes of a group are not adjacent.
    pub(super) fn scatter(&mut self, group: u32) {
        let Some(first) = self.groups[group as usize].members.first() else { return };
        let from = self.calls.scattered_from.get_or_insert(first.seq);
        *from = first.seq.min(*from);
    }

    /// Registers the calls of a node. An older call with the same id that still waits for a result
    /// is closed, so that an id identifies one call at a time.
    pub(super) fn open_calls(&mut self, node: &Node) {
        for id in &node.outline.calls {
            let older = self.owner(id);
            if let Some(older) = older {
                self.groups[older as usize].gave_up = true;
            }
            let waited = self.calls.open.insert(id.clone(), node.group).is_some();
            if let Some(older) = older.filter(|_| waited) {
                self.calls.given_up.push((id.clone(), older));
            }
            self.calls.synthetic.remove(id);
        }
    }

    /// Removes the synthetic result of a call whose real result has arrived.
    fn take_synthetic(&mut self, id: &CallId) {
        let place = self.calls.synthetic.remove(id);
        if let Some(at) = place.and_then(|place| self.position(place)) {
            self.drop_node(at, &Reason::finish("the result came late"));
        }
    }
}

/// Checks rule 1 over messages that are about to be sent: every result follows its call with only
/// assistant messages and other results in between, no call is answered twice, and none is
/// unanswered. The error names the id and the problem.
pub fn check_pairs<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Result<(), String> {
    let mut open: HashSet<&CallId> = HashSet::new();
    for message in messages {
        let mut answers = false;
        for result in message.tool_results() {
            answers = true;
            if !open.remove(&result.call_id) {
                return Err(format!("result {} has no open call before it", result.call_id));
            }
        }
        if let Some(id) = open.iter().next()
            && !answers
            && message.role != Role::Assistant
        {
            return Err(format!("a {} message is between call {id} and its result", message.role));
        }
        for call in message.tool_calls() {
            if !open.insert(&call.id) {
                return Err(format!("duplicate call {} before its result", call.id));
            }
        }
    }
    match open.into_iter().next() {
        None => Ok(()),
        Some(id) => Err(format!("call {id} has no result")),
    }
}

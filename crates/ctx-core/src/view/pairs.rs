//! Rule 1: a tool call and its results stay together, or go together.

use std::collections::{HashMap, HashSet};

use crate::{CallId, Facts, Message, Role};

use super::group::Place;
use super::node::Why;
use super::{ContextView, Node};

/// The tool calls of a view, by what became of them.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Calls that wait for their result, with their groups.
    pub(super) open: HashMap<CallId, u32>,
    /// Calls that will get none, because a later call took their id.
    pub(super) given_up: Vec<(CallId, u32)>,
    /// Stand-ins for results that may yet come.
    pub(super) synthetic: HashMap<CallId, Place>,
    /// Where the first group begins that does not stand together.
    pub(super) scattered_from: Option<u64>,
}

/// The results of a message that answer a call.
#[derive(Debug, Default)]
pub(super) struct Claims {
    pub(super) ids: HashSet<CallId>,
    /// The group they join.
    pub(super) home: Option<u32>,
    /// Where the groups begin that must become one, because the message answers calls of several.
    merge_from: Option<usize>,
}

impl ContextView {
    /// Which results of a message answer a call before it. A message can stand after one group
    /// only, so that where it answers calls of several, these must be one answer, recorded in
    /// pieces; else it answers those of the newest. A message that makes calls answers none.
    pub(super) fn claims(&self, facts: &Facts) -> Claims {
        let mut owners: HashMap<&CallId, u32> = HashMap::new();
        for id in facts.results.iter().filter(|_| facts.calls.is_empty()) {
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

    /// Where the first of `groups` begins, if all of them belong to the answer right before the
    /// message that is coming. What became of the messages in between does not count: the outcome
    /// may depend on nothing but the session.
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
    /// fresh one if it answers none.
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

    /// Notes that a group does not stand together.
    pub(super) fn scatter(&mut self, group: u32) {
        let Some(first) = self.groups[group as usize].members.first() else { return };
        let from = self.calls.scattered_from.get_or_insert(first.seq);
        *from = first.seq.min(*from);
    }

    /// Notes the calls a node makes. A call whose id is still waiting for a result gives it up, so
    /// that an id names one call at a time.
    pub(super) fn open_calls(&mut self, node: &Node) {
        for id in &node.facts.calls {
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

    /// The real result of a call has come after all: its stand-in goes.
    fn take_synthetic(&mut self, id: &CallId) {
        let place = self.calls.synthetic.remove(id);
        if let Some(at) = place.and_then(|place| self.position(place)) {
            self.drop_node(at, &Why::finish("the result came late"));
        }
    }
}

/// Checks rule 1 over messages that are about to go out: every result follows its call with nothing
/// but assistant messages and other results in between, no call is answered twice, none is left
/// unanswered. The error says which id and what is wrong.
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
                return Err(format!("call {} is made again before its result", call.id));
            }
        }
    }
    match open.into_iter().next() {
        None => Ok(()),
        Some(id) => Err(format!("call {id} has no result")),
    }
}

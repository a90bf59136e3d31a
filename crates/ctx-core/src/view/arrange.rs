//! Putting every result right after its call, and answering calls that have none.

use std::collections::HashMap;
use std::sync::Arc;

use crate::{Action, Block, CallId, Entry, Facts, Message, Role, Tokens, ToolResult};

use super::group::Place;
use super::node::Why;
use super::{ContextView, Node, SEQ_STEP};

/// Stands in for a result that the transcript lacks.
pub const MISSING_RESULT_NOTICE: &str =
    "[ctx] no result of this tool call is in the session's history; the call may not have run";

const MISSING: &str = "result missing";

/// Nodes in the order they had, to be taken out one by one.
struct Tail {
    nodes: Vec<Option<Node>>,
    index: HashMap<u64, usize>,
    /// The first node that may not have been taken yet.
    next: usize,
}

impl Tail {
    fn new(nodes: Vec<Node>) -> Self {
        let index = nodes.iter().enumerate().map(|(at, node)| (node.key, at)).collect();
        Self { nodes: nodes.into_iter().map(Some).collect(), index, next: 0 }
    }

    /// Takes a node out, and says how it comes to its new place.
    fn take(&mut self, key: u64) -> Option<(Node, Came)> {
        let at = *self.index.get(&key)?;
        let node = self.nodes[at].take()?;
        while self.nodes.get(self.next).is_some_and(Option::is_none) {
            self.next += 1;
        }
        Some((node, if at < self.next { Came::InOrder } else { Came::Moved }))
    }

    fn is_synthetic(&self, key: u64) -> bool {
        let at = self.index.get(&key);
        at.and_then(|&at| self.nodes[at].as_ref()).is_some_and(|node| node.synthetic)
    }
}

/// How a node comes to its place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Came {
    InOrder,
    Moved,
    New,
}

impl ContextView {
    /// Gives every call that is still without a result a synthetic error result, and moves results
    /// that came late to their calls: providers refuse a request in which anything else stands
    /// between. One pass from the first group concerned, however many there are.
    pub(super) fn settle(&mut self) {
        let mut stand_ins = self.stand_ins();
        let Some(from) = self.calls.scattered_from.take() else { return };
        let start = self.nodes.partition_point(|n| n.seq < from);
        let mut tail = Tail::new(self.nodes.split_off(start));
        for at in 0..tail.nodes.len() {
            let Some(key) = tail.nodes[at].as_ref().map(|node| node.key) else { continue };
            let Some((head, came)) = tail.take(key) else { continue };
            let group = head.group;
            let place = self.put(head, came);
            let members = std::mem::take(&mut self.groups[group as usize].members);
            let late = stand_ins.remove(&group).unwrap_or_default();
            self.groups[group as usize].members = if members.len() + late.len() > 1 {
                self.put_rest(place, members, late, &mut tail)
            } else {
                vec![place]
            };
        }
        let last = self.nodes.last().map_or(0, |n| n.seq);
        self.next_seq = self.next_seq.max(last + SEQ_STEP);
    }

    /// Puts the rest of a group after its first node: real results before stand-ins, so that the
    /// order does not depend on when the results came. Returns where they stand.
    fn put_rest(
        &mut self,
        head: Place,
        members: Vec<Place>,
        late: Vec<Node>,
        tail: &mut Tail,
    ) -> Vec<Place> {
        let mut places = vec![head];
        let (synthetic, real): (Vec<Place>, Vec<Place>) =
            members.into_iter().partition(|m| tail.is_synthetic(m.key));
        for member in real {
            if let Some((node, came)) = tail.take(member.key) {
                places.push(self.put(node, came));
            }
        }
        let known = synthetic.into_iter().filter_map(|member| tail.take(member.key));
        let mut stand_ins: Vec<(Node, Came)> =
            known.chain(late.into_iter().map(|node| (node, Came::New))).collect();
        let order = self.call_order(&places);
        stand_ins.sort_by_key(|(node, _)| node.facts.results.first().and_then(|id| order.get(id)));
        places.extend(stand_ins.into_iter().map(|(node, came)| self.put(node, came)));
        places
    }

    /// In which order the nodes at these places make their calls.
    fn call_order(&self, places: &[Place]) -> HashMap<CallId, usize> {
        let mut order = HashMap::new();
        for at in places.iter().filter_map(|&place| self.position(place)) {
            for id in &self.nodes[at].facts.calls {
                let next = order.len();
                order.entry(id.clone()).or_insert(next);
            }
        }
        order
    }

    fn put(&mut self, mut node: Node, came: Came) -> Place {
        let first_free = self.nodes.last().map_or(1, |n| n.seq + 1);
        if came != Came::InOrder || node.seq < first_free {
            node.seq = first_free;
        }
        if came != Came::InOrder {
            self.touch(self.nodes.len());
        }
        if came == Came::Moved && node.is_live() {
            let (entry, tokens) = (node.entry.id().clone(), node.tokens);
            self.record(entry, Action::Move, tokens, tokens, Why::finish("next to its call"));
        }
        let place = Place { seq: node.seq, key: node.key };
        if node.synthetic
            && let Some(id) = node.facts.results.first()
            && let Some(known) = self.calls.synthetic.get_mut(id)
            && known.key == place.key
        {
            *known = place;
        }
        self.nodes.push(node);
        place
    }

    /// Makes a stand-in for the result of every call that has none, by group.
    fn stand_ins(&mut self) -> HashMap<u32, Vec<Node>> {
        let mut unanswered: HashMap<u32, HashMap<CallId, bool>> = HashMap::new();
        let open = std::mem::take(&mut self.calls.open).into_iter().map(|(id, g)| (id, g, true));
        let given_up = std::mem::take(&mut self.calls.given_up);
        for (id, group, may_come) in open.chain(given_up.into_iter().map(|(id, g)| (id, g, false)))
        {
            unanswered.entry(self.root(group)).or_default().insert(id, may_come);
        }
        let mut groups: Vec<u32> = unanswered.keys().copied().collect();
        groups.sort_unstable();
        let mut made = HashMap::new();
        for group in groups {
            let Some(mut ids) = unanswered.remove(&group) else { continue };
            self.scatter(group);
            made.insert(group, self.stand_ins_of(group, &mut ids));
        }
        made
    }

    /// The stand-ins of one group, in the order of its calls.
    fn stand_ins_of(&mut self, group: u32, ids: &mut HashMap<CallId, bool>) -> Vec<Node> {
        let mut made = Vec::new();
        for at in self.positions_of(group) {
            let node = &self.nodes[at];
            if !node.is_live() {
                continue;
            }
            let (caller, calls) = (node.entry.id().clone(), node.facts.calls.clone());
            for id in calls {
                let Some(may_come) = ids.remove(&id) else { continue };
                let node = self.stand_in(&caller, &id, group);
                if may_come {
                    self.calls.synthetic.insert(id, Place { seq: node.seq, key: node.key });
                }
                made.push(node);
            }
        }
        made
    }

    fn stand_in(&mut self, caller: &str, id: &CallId, group: u32) -> Node {
        let result = ToolResult {
            call_id: id.clone(),
            name: None,
            content: vec![Block::text(MISSING_RESULT_NOTICE)],
            is_error: true,
        };
        let message = Message::new(Role::ToolResult, vec![Block::ToolResult(result)]);
        let facts = Facts::of(&message);
        let tokens = self.ledger.count(&message);
        let entry = Arc::new(Entry::held(format!("synthetic:{caller}:{id}"), message));
        let (entry_id, known) = (entry.id().clone(), self.forms.lookup_replaced(&entry, &facts));
        let mut node = Node::new(entry, facts, tokens, Place { seq: 0, key: self.fresh_key() });
        if let Some(known) = known {
            node.set_form(known, self.ledger.counter(), &Why::finish(MISSING));
        }
        node.group = group;
        node.synthetic = true;
        node.make_inserted(Why::finish(MISSING));
        self.add_up(&node);
        self.record(entry_id, Action::Insert, Tokens::ZERO, node.tokens, Why::finish(MISSING));
        node
    }
}

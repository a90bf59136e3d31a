//! Moving every result right after its call, and answering calls that have no result.

use std::collections::HashMap;
use std::sync::Arc;

use crate::{Action, Block, CallId, Entry, Message, MessageOutline, Role, Tokens, ToolResult};

use super::group::NodeHandle;
use super::node::Reason;
use super::{ContextView, Node, SEQ_STEP};

/// The text of the synthetic result for a call whose result is missing in the transcript.
pub const MISSING_RESULT_NOTICE: &str =
    "[ctx] no result of this tool call is in the session's history; the call may not have run";

const MISSING: &str = "result missing";

/// Nodes in their previous order, to be removed one by one.
struct Tail {
    nodes: Vec<Option<Node>>,
    index: HashMap<u64, usize>,
    /// The index of the first node that may still be present.
    next: usize,
}

impl Tail {
    fn new(nodes: Vec<Node>) -> Self {
        let index = nodes.iter().enumerate().map(|(at, node)| (node.key, at)).collect();
        Self { nodes: nodes.into_iter().map(Some).collect(), index, next: 0 }
    }

    /// Removes a node. Returns it, and how it gets to its new place.
    fn take(&mut self, key: u64) -> Option<(Node, Placement)> {
        let at = *self.index.get(&key)?;
        let node = self.nodes[at].take()?;
        while self.nodes.get(self.next).is_some_and(Option::is_none) {
            self.next += 1;
        }
        Some((node, if at < self.next { Placement::InOrder } else { Placement::Moved }))
    }

    fn is_synthetic(&self, key: u64) -> bool {
        let at = self.index.get(&key);
        at.and_then(|&at| self.nodes[at].as_ref()).is_some_and(|node| node.synthetic)
    }
}

/// How a node gets to its place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Placement {
    InOrder,
    Moved,
    New,
}

impl ContextView {
    /// Adds a synthetic error result to every call without a result, and moves late results next to
    /// their calls: providers refuse a request with anything else in between. Takes a single pass
    /// from the first affected group.
    pub(super) fn settle(&mut self) {
        let mut synthetic_results = self.synthetic_results();
        let Some(from) = self.calls.scattered_from.take() else { return };
        let start = self.nodes.partition_point(|n| n.seq < from);
        let mut tail = Tail::new(self.nodes.split_off(start));
        for at in 0..tail.nodes.len() {
            let Some(key) = tail.nodes[at].as_ref().map(|node| node.key) else { continue };
            let Some((head, placement)) = tail.take(key) else { continue };
            let group = head.group;
            let place = self.put(head, placement);
            let members = std::mem::take(&mut self.groups[group as usize].members);
            let late = synthetic_results.remove(&group).unwrap_or_default();
            self.groups[group as usize].members = if members.len() + late.len() > 1 {
                self.put_rest(place, members, late, &mut tail)
            } else {
                vec![place]
            };
        }
        let last = self.nodes.last().map_or(0, |n| n.seq);
        self.next_seq = self.next_seq.max(last + SEQ_STEP);
    }

    /// Appends the rest of a group after its first node: real results before synthetic ones, so
    /// that the order does not depend on when the results arrived. Returns the places of the nodes.
    fn put_rest(
        &mut self,
        head: NodeHandle,
        members: Vec<NodeHandle>,
        late: Vec<Node>,
        tail: &mut Tail,
    ) -> Vec<NodeHandle> {
        let mut places = vec![head];
        let (synthetic, real): (Vec<NodeHandle>, Vec<NodeHandle>) =
            members.into_iter().partition(|m| tail.is_synthetic(m.key));
        for member in real {
            if let Some((node, placement)) = tail.take(member.key) {
                places.push(self.put(node, placement));
            }
        }
        let known = synthetic.into_iter().filter_map(|member| tail.take(member.key));
        let mut synthetic_results: Vec<(Node, Placement)> =
            known.chain(late.into_iter().map(|node| (node, Placement::New))).collect();
        let order = self.call_order(&places);
        synthetic_results
            .sort_by_key(|(node, _)| node.outline.results.first().and_then(|id| order.get(id)));
        places.extend(
            synthetic_results.into_iter().map(|(node, placement)| self.put(node, placement)),
        );
        places
    }

    /// Returns the order of the calls that the nodes at these places make.
    fn call_order(&self, places: &[NodeHandle]) -> HashMap<CallId, usize> {
        let mut order = HashMap::new();
        for at in places.iter().filter_map(|&place| self.position(place)) {
            for id in &self.nodes[at].outline.calls {
                let next = order.len();
                order.entry(id.clone()).or_insert(next);
            }
        }
        order
    }

    fn put(&mut self, mut node: Node, placement: Placement) -> NodeHandle {
        let first_free = self.nodes.last().map_or(1, |n| n.seq + 1);
        if placement != Placement::InOrder || node.seq < first_free {
            node.seq = first_free;
        }
        if placement != Placement::InOrder {
            self.touch(self.nodes.len());
        }
        if placement == Placement::Moved && node.is_live() {
            let (entry, tokens) = (node.entry.id().clone(), node.tokens);
            self.record(entry, Action::Move, tokens, tokens, Reason::finish("next to its call"));
        }
        let place = NodeHandle { seq: node.seq, key: node.key };
        if node.synthetic
            && let Some(id) = node.outline.results.first()
            && let Some(known) = self.calls.synthetic.get_mut(id)
            && known.key == place.key
        {
            *known = place;
        }
        self.nodes.push(node);
        place
    }

    /// Creates a synthetic result for every call that has none, by group.
    fn synthetic_results(&mut self) -> HashMap<u32, Vec<Node>> {
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
            made.insert(group, self.synthetic_results_of(group, &mut ids));
        }
        made
    }

    /// Creates the synthetic results of one group, in the order of its calls.
    fn synthetic_results_of(&mut self, group: u32, ids: &mut HashMap<CallId, bool>) -> Vec<Node> {
        let mut made = Vec::new();
        for at in self.positions_of(group) {
            let node = &self.nodes[at];
            if !node.is_live() {
                continue;
            }
            let (caller, calls) = (node.entry.id().clone(), node.outline.calls.clone());
            for id in calls {
                let Some(may_come) = ids.remove(&id) else { continue };
                let node = self.synthetic_result(&caller, &id, group);
                if may_come {
                    self.calls.synthetic.insert(id, NodeHandle { seq: node.seq, key: node.key });
                }
                made.push(node);
            }
        }
        made
    }

    fn synthetic_result(&mut self, caller: &str, id: &CallId, group: u32) -> Node {
        let result = ToolResult {
            call_id: id.clone(),
            name: None,
            content: vec![Block::text(MISSING_RESULT_NOTICE)],
            is_error: true,
        };
        let message = Message::new(Role::ToolResult, vec![Block::ToolResult(result)]);
        let outline = MessageOutline::of(&message);
        let tokens = self.ledger.count(&message);
        let entry = Arc::new(Entry::in_memory(format!("synthetic:{caller}:{id}"), message));
        let (entry_id, known) =
            (entry.id().clone(), self.projections.lookup_replaced(&entry, &outline));
        let mut node =
            Node::new(entry, outline, tokens, NodeHandle { seq: 0, key: self.fresh_key() });
        if let Some(known) = known {
            node.set_form(known, self.ledger.counter(), &Reason::finish(MISSING));
        }
        node.group = group;
        node.synthetic = true;
        node.make_inserted(Reason::finish(MISSING));
        self.add_up(&node);
        self.record(entry_id, Action::Insert, Tokens::ZERO, node.tokens, Reason::finish(MISSING));
        node
    }
}

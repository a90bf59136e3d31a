//! Groups of messages, and their positions.

use crate::CallId;

use super::ContextView;

/// The place of a node, valid until the node is moved: see [`ContextView::position`]. Unlike a
/// position, it stays valid when other nodes are added or removed.
// Nodes are sorted by `seq`; `key` distinguishes nodes with the same `seq` and never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeHandle {
    pub(super) seq: u64,
    pub(super) key: u64,
}

/// A tool call and its results, or one message on its own.
#[derive(Debug, Default)]
pub(super) struct NodeGroup {
    /// Its nodes, in the order in which they were appended.
    pub(super) members: Vec<NodeHandle>,
    /// The number of pinned members.
    pub(super) pins: u32,
    /// Whether it is the tool call in progress, or one of several parallel ones.
    pub(super) in_progress: bool,
    /// Whether one of its calls was closed because a later call reused its id.
    pub(super) gave_up: bool,
    /// The group into which it was merged.
    pub(super) merged_into: Option<u32>,
}

impl ContextView {
    /// Whether the node cannot be dropped: system and pinned messages, the newest user message, the
    /// tool call in progress and its results, and the other members of their groups.
    #[must_use]
    pub fn is_protected(&self, at: usize) -> bool {
        self.nodes.get(at).is_some_and(|node| self.group_is_protected(node.group))
    }

    /// Whether the node is the newest user message.
    #[must_use]
    pub fn is_newest_user(&self, at: usize) -> bool {
        let newest = self.newest_user.map(|user| user.key);
        self.nodes.get(at).is_some_and(|node| newest == Some(node.key))
    }

    pub(super) fn group_is_protected(&self, group: u32) -> bool {
        let of = &self.groups[group as usize];
        of.pins > 0 || of.in_progress || self.newest_user.is_some_and(|user| user.group == group)
    }

    pub(super) fn fresh_group(&mut self) -> u32 {
        self.groups.push(NodeGroup::default());
        (self.groups.len() - 1) as u32
    }

    /// Returns the group into which `group` was merged, directly or indirectly.
    pub(super) fn root(&self, mut group: u32) -> u32 {
        while let Some(into) = self.groups[group as usize].merged_into {
            group = into;
        }
        group
    }

    /// Returns the position of a node, unless it was moved or swept.
    #[must_use]
    pub fn position(&self, place: NodeHandle) -> Option<usize> {
        let from = self.nodes.partition_point(|n| n.seq < place.seq);
        let same_seq = self.nodes[from..].iter().take_while(|n| n.seq == place.seq);
        same_seq.zip(from..).find(|(n, _)| n.key == place.key).map(|(_, at)| at)
    }

    /// Returns the positions of all nodes in the group at position `at`, in order: a tool call and
    /// its results, or one message on its own.
    #[must_use]
    pub fn group_at(&self, at: usize) -> Vec<usize> {
        self.nodes.get(at).map(|node| self.positions_of(node.group)).unwrap_or_default()
    }

    /// Returns the positions of all nodes of a group, in order.
    pub(super) fn positions_of(&self, group: u32) -> Vec<usize> {
        let members = &self.groups[group as usize].members;
        let mut positions: Vec<usize> = members.iter().filter_map(|&m| self.position(m)).collect();
        positions.sort_unstable();
        positions
    }

    /// Merges the groups of all messages of the answer from `start` on. The answer was recorded in
    /// several messages, and one message contains results for more than one of them.
    pub(super) fn merge_from(&mut self, start: usize) -> u32 {
        let into = self.nodes[start].group;
        let mut merged = std::mem::take(&mut self.groups[into as usize]);
        for at in start..self.nodes.len() {
            if !self.nodes[at].is_of_answer() {
                continue;
            }
            let group = std::mem::replace(&mut self.nodes[at].group, into);
            if group != into && self.groups[group as usize].merged_into.is_none() {
                let of = &mut self.groups[group as usize];
                merged.members.append(&mut of.members);
                merged.pins += of.pins;
                merged.in_progress |= of.in_progress;
                of.merged_into = Some(into);
            }
        }
        if merged.in_progress {
            self.in_progress.push(into);
        }
        self.groups[into as usize] = merged;
        into
    }

    /// Returns the group whose call with this id waits for a result or has a synthetic one.
    pub(super) fn owner(&self, id: &CallId) -> Option<u32> {
        if let Some(&group) = self.calls.open.get(id) {
            return Some(self.root(group));
        }
        let at = self.position(*self.calls.synthetic.get(id)?)?;
        self.nodes[at].is_live().then_some(self.nodes[at].group)
    }
}

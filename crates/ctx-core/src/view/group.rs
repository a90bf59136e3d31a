//! Which messages go together, and where they stand.

use crate::CallId;

use super::ContextView;

/// Where a node stands, for as long as it is not moved: see [`ContextView::position`]. Unlike a
/// position it holds when other nodes come and go.
// Nodes are sorted by `seq`; `key` tells apart those that share one, and stays with its node for
// good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub(super) seq: u64,
    pub(super) key: u64,
}

/// A tool call and its results, or one message on its own.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// Its nodes, in the order they came.
    pub(super) members: Vec<Place>,
    /// How many of them are pinned.
    pub(super) pins: u32,
    /// Whether it is the tool call in progress, or one of several that run in parallel.
    pub(super) in_progress: bool,
    /// Whether one of its calls was given up because a later call took its id.
    pub(super) gave_up: bool,
    /// The group that took its nodes over.
    pub(super) merged_into: Option<u32>,
}

impl ContextView {
    /// Whether the node may never be dropped: system and pinned messages, the newest user message,
    /// the tool call in progress and its results; and what belongs to one group with them.
    #[must_use]
    pub fn is_protected(&self, at: usize) -> bool {
        self.nodes.get(at).is_some_and(|node| self.group_is_protected(node.group))
    }

    /// Whether the node is what the user said last.
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
        self.groups.push(Group::default());
        (self.groups.len() - 1) as u32
    }

    /// The group that now holds what was put into `group`.
    pub(super) fn root(&self, mut group: u32) -> u32 {
        while let Some(into) = self.groups[group as usize].merged_into {
            group = into;
        }
        group
    }

    /// The position of a node, unless it was moved or swept away.
    #[must_use]
    pub fn position(&self, place: Place) -> Option<usize> {
        let from = self.nodes.partition_point(|n| n.seq < place.seq);
        let same_seq = self.nodes[from..].iter().take_while(|n| n.seq == place.seq);
        same_seq.zip(from..).find(|(n, _)| n.key == place.key).map(|(_, at)| at)
    }

    /// The positions of all nodes of the group that holds position `at`, in order: a tool call and
    /// its results, or one message on its own.
    #[must_use]
    pub fn group_at(&self, at: usize) -> Vec<usize> {
        self.nodes.get(at).map(|node| self.positions_of(node.group)).unwrap_or_default()
    }

    /// The positions of all nodes of a group, in order.
    pub(super) fn positions_of(&self, group: u32) -> Vec<usize> {
        let members = &self.groups[group as usize].members;
        let mut positions: Vec<usize> = members.iter().filter_map(|&m| self.position(m)).collect();
        positions.sort_unstable();
        positions
    }

    /// Makes one group of all the answer's messages from `start` on. They are an answer that was
    /// recorded in several messages, and one message answers calls of more than one of them.
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

    /// The group whose call is waiting for a result with this id, or was answered by a stand-in.
    pub(super) fn owner(&self, id: &CallId) -> Option<u32> {
        if let Some(&group) = self.calls.open.get(id) {
            return Some(self.root(group));
        }
        let at = self.position(*self.calls.synthetic.get(id)?)?;
        self.nodes[at].is_live().then_some(self.nodes[at].group)
    }
}

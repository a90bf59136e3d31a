//! Reports about a view.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{Component, Manifest, Message, NodeState, Result, Role, Tokens};

use super::{ContextView, Node};

impl ContextView {
    /// Returns the messages to be sent, oldest first.
    pub fn messages(&self) -> Result<Vec<Arc<Message>>> {
        self.nodes.iter().filter(|n| n.is_live()).map(Node::message).collect()
    }

    /// Returns the contents of the request by entry and by component.
    #[must_use]
    pub fn manifest(&self) -> Manifest {
        let mut all: Vec<&Node> = self.dropped.iter().chain(&self.nodes).collect();
        all.sort_by_key(|node| node.seq);
        let mut layers = BTreeMap::new();
        for edit in &self.edits {
            *layers.entry(edit.layer.clone()).or_insert(0) += 1;
        }
        Manifest {
            window: self.ledger.window(),
            reserve: self.ledger.reserve(),
            limit: self.ledger.limit(),
            tokens: self.used(),
            unchanged_prefix: self.unchanged_prefix(),
            components: self.components(),
            entries: all.into_iter().map(Node::manifest_entry).collect(),
            layers,
            engine: self.engine.clone(),
        }
    }

    /// Returns the size of the request by component, in the order of the request.
    #[must_use]
    pub fn components(&self) -> Vec<Component> {
        let mut sums = [Tokens::ZERO; 5];
        let newest = self.newest_user.map(|user| user.key);
        for node in self.nodes.iter().filter(|n| n.is_live()) {
            let slot = match node.outline.role {
                Role::System => 0,
                Role::CompactionSummary | Role::BranchSummary => 1,
                _ if node.state == NodeState::Inserted => 2,
                _ if newest == Some(node.key) => 4,
                _ => 3,
            };
            sums[slot] += node.tokens;
        }
        let [system, summary, inserted, history, newest] = sums;
        [
            ("system", self.ledger.system() + system),
            ("tools", self.ledger.tools),
            ("summary", summary),
            ("inserted", inserted),
            ("history", history),
            ("newest", newest),
            ("pending", self.ledger.pending),
        ]
        .map(|(name, tokens)| Component { name: name.into(), tokens })
        .to_vec()
    }
}

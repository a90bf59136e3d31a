//! Counts the actions of each layer.

use std::collections::BTreeMap;
use std::sync::Mutex;

use ctx_core::Edit;

use crate::sync::locked;

/// Names of the runtime's own actions, which are counted beside the edits of layers.
pub(crate) mod layer {
    pub(crate) const WINDOW_GUARD: &str = "window-guard";
    pub(crate) const TOOL_GUARD: &str = "tool-guard";
    pub(crate) const COMPACTION: &str = "compaction";
    pub(crate) const FLUSH: &str = "memory-flush";
    pub(crate) const FAILOVER: &str = "failover";
}

/// The number of times a layer did something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerAction {
    /// The layer.
    pub layer: String,
    /// The action. Edits of requests: `drop`, `replace`, `insert`, `pin`, `move`. Others: `compact`
    /// (a compaction), `bound` (a tool result was shortened), `refuse` (a model's window is too
    /// small), `flush` (a memory flush), `fail` (a fallback model took over).
    pub action: &'static str,
    /// The count since the runtime was built.
    pub count: u64,
}

/// Counts the actions of layers. Each count is also sent to `tracing` under the target
/// `ctx::layers`, in a field whose name metrics collectors recognise as a counter.
#[derive(Debug, Default)]
pub(crate) struct LayerCounts(Mutex<BTreeMap<(String, &'static str), u64>>);

impl LayerCounts {
    /// Counts the edits of a request.
    pub(crate) fn edits(&self, edits: &[Edit]) {
        let mut by_layer: BTreeMap<(&str, &'static str), u64> = BTreeMap::new();
        for edit in edits {
            *by_layer.entry((&edit.layer, edit.action.name())).or_default() += 1;
        }
        for ((layer, action), count) in by_layer {
            self.add(layer, action, count);
        }
    }

    /// Counts another action of a layer.
    pub(crate) fn action(&self, layer: &str, action: &'static str) {
        self.add(layer, action, 1);
    }

    fn add(&self, layer: &str, action: &'static str, count: u64) {
        tracing::debug!(
            target: "ctx::layers",
            layer,
            action,
            monotonic_counter.layer_actions = count,
            "a layer acted",
        );
        let mut counts = locked(&self.0);
        *counts.entry((layer.to_owned(), action)).or_default() += count;
    }

    pub(crate) fn list(&self) -> Vec<LayerAction> {
        let counts = locked(&self.0);
        let actions = counts.iter().map(|((layer, action), count)| LayerAction {
            layer: layer.clone(),
            action,
            count: *count,
        });
        actions.collect()
    }
}

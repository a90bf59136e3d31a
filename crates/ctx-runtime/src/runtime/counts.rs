//! How often each layer did what.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use ctx_core::Edit;

/// The names under which the runtime's own doings are counted, beside the edits of layers.
pub(crate) mod layer {
    pub(crate) const WINDOW_GUARD: &str = "window-guard";
    pub(crate) const TOOL_GUARD: &str = "tool-guard";
    pub(crate) const COMPACTION: &str = "compaction";
    pub(crate) const FLUSH: &str = "memory-flush";
    pub(crate) const FAILOVER: &str = "failover";
}

/// How often a layer did something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerAction {
    /// The layer.
    pub layer: String,
    /// What it did: `drop`, `replace`, `insert`, `pin` and `move` are edits of requests; `compact`,
    /// `bound`, `refuse`, `flush` and `fail` are what the names say.
    pub action: &'static str,
    /// How often, since the runtime was made.
    pub count: u64,
}

/// Counts what layers do. Each count goes to `tracing` as well, under the target `ctx::layers`, in a
/// field whose name collectors of metrics take for a counter.
#[derive(Debug, Default)]
pub(crate) struct Counts(Mutex<BTreeMap<(String, &'static str), u64>>);

impl Counts {
    /// Counts edits of a request.
    pub(crate) fn edits(&self, edits: &[Edit]) {
        let mut by_layer: BTreeMap<(&str, &'static str), u64> = BTreeMap::new();
        for edit in edits {
            *by_layer.entry((&edit.layer, edit.action.name())).or_default() += 1;
        }
        for ((layer, action), count) in by_layer {
            self.add(layer, action, count);
        }
    }

    /// Counts something else that a layer did.
    pub(crate) fn did(&self, layer: &str, action: &'static str) {
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
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry((layer.to_owned(), action)).or_default() += count;
    }

    pub(crate) fn list(&self) -> Vec<LayerAction> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let actions = counts.iter().map(|((layer, action), count)| LayerAction {
            layer: layer.clone(),
            action,
            count: *count,
        });
        actions.collect()
    }
}

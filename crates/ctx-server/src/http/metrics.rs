//! Prometheus metrics of a server.

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use ctx_store::{AnyStore, StoreHealth};
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Metric, Registry, Unit};

/// The names and values of `N` labels.
type Labels<const N: usize> = [(&'static str, &'static str); N];

/// The metrics of a proxy.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    /// The store of the replicas, if there is one.
    store: Arc<OnceLock<AnyStore>>,
    /// Finished requests, by `protocol` (`chat`, `responses`, `messages`, `gemini`, or `other`) and
    /// `outcome` (`ok`, `refused`, `failed`, `abandoned`, `rejected`).
    requests: Family<Labels<2>, Counter>,
    /// Tokens sent by clients.
    pub(crate) raw_tokens: Counter,
    /// Tokens sent to providers.
    pub(crate) sent_tokens: Counter,
    /// Answer tokens as counted by providers.
    pub(crate) output_tokens: Counter,
    /// Compactions.
    compactions: Counter,
    /// Summaries in compactions, by `outcome` (`written`, `extracted`, `unasked`, `failed`,
    /// `unusable`).
    summaries: Family<Labels<1>, Counter>,
    /// Requests that do not begin like the previous one, by `cause` (`compaction`, `edit`,
    /// `client`).
    prefix_breaks: Family<Labels<1>, Counter>,
    /// Tokens of the previous requests that were not sent again: cached in vain.
    prefix_lost_tokens: Family<Labels<1>, Counter>,
    /// Lost writes to disk. The label `of` is `conversation` or `record`.
    unwritten: Family<Labels<1>, Counter>,
    /// Tool results dropped because their calls are not in the request.
    pub(crate) orphaned_results: Counter,
    /// Requests that were refused as too long and then accepted in a smaller form.
    pub(crate) recoveries: Counter,
    /// Seconds added before the request was sent to the provider.
    pub(crate) added: Histogram,
    /// Conversations in memory.
    pub(crate) conversations: Gauge,
}

ctx_core::partial_debug!(Metrics, it, registry = it.registry);

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("ctx");
        let all = &mut registry;
        // From 0.1 ms to about half a minute.
        let added = Histogram::new(exponential_buckets(0.0001, 2.0, 19));
        let words = "Time added before the request was sent to the provider";
        all.register_with_unit("added", words, Unit::Seconds, added.clone());
        Self {
            requests: new(all, "requests", "Requests by protocol and outcome"),
            raw_tokens: new(all, "raw_tokens", "Tokens sent by clients"),
            sent_tokens: new(all, "sent_tokens", "Tokens sent to providers"),
            output_tokens: new(all, "output_tokens", "Answer tokens as counted by providers"),
            compactions: new(all, "compactions", "Compactions"),
            summaries: new(all, "summaries", "Summaries of compactions by outcome"),
            prefix_breaks: new(
                all,
                "prefix_breaks",
                "Requests that do not begin like the previous one",
            ),
            prefix_lost_tokens: new(
                all,
                "prefix_lost_tokens",
                "Tokens of previous requests that were not sent again",
            ),
            unwritten: new(all, "unwritten", "Changes and records that could not be written"),
            orphaned_results: new(
                all,
                "orphaned_results",
                "Tool results dropped because their calls are missing",
            ),
            recoveries: new(
                all,
                "recoveries",
                "Requests refused as too long and accepted in a smaller form",
            ),
            added,
            conversations: new(all, "conversations", "Conversations in memory"),
            store: Arc::default(),
            registry: Arc::new(registry),
        }
    }
}

/// Registers a metric.
fn new<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

impl Metrics {
    /// Counts a finished request.
    pub(crate) fn request(&self, protocol: &'static str, outcome: &'static str) {
        self.requests.get_or_create(&[("protocol", protocol), ("outcome", outcome)]).inc();
    }

    /// Counts a compaction, and the outcome of its summary if known.
    pub(crate) fn compaction(&self, summary: Option<&'static str>) {
        self.compactions.inc();
        if let Some(outcome) = summary {
            self.summaries.get_or_create(&[("outcome", outcome)]).inc();
        }
    }

    /// Counts a request that does not begin like the previous request.
    pub(crate) fn prefix_break(&self, cause: &'static str, tokens: u64) {
        let labels = [("cause", cause)];
        self.prefix_breaks.get_or_create(&labels).inc();
        self.prefix_lost_tokens.get_or_create(&labels).inc_by(tokens);
    }

    /// Counts lost writes.
    pub(crate) fn not_written(&self, of: &'static str, count: u64) {
        self.unwritten.get_or_create(&[("of", of)]).inc_by(count);
    }

    /// Adds the metrics of a store.
    pub(crate) fn set_store(&self, store: AnyStore) {
        let _ = self.store.set(store);
    }

    /// Returns how the store is, if there is one that knows.
    pub(crate) fn store_health(&self) -> Option<StoreHealth> {
        self.store.get()?.health()
    }

    /// Returns all metrics in the OpenMetrics text format.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail; a failing family would be omitted.
        let _ = encode_registry(&mut text, &self.registry);
        if let Some(health) = self.store_health() {
            let _ = encode_registry(&mut text, &store_registry(&health));
        }
        let _ = encode_eof(&mut text);
        text
    }
}

/// Returns the metrics of a store.
fn store_registry(health: &StoreHealth) -> Registry {
    let mut registry = Registry::with_prefix("ctx_store");
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    for (name, help, value) in [
        ("reachable", "Whether calls of the shared store are made", i64::from(health.is_reachable)),
        ("connections", "Open connections to the shared store", number(health.connections)),
        ("connections_in_use", "Connections in use", number(health.in_use)),
        ("waiting", "Calls that wait for a connection", number(health.waiting)),
    ] {
        new::<Gauge>(&mut registry, name, help).set(value);
    }
    for (name, help, value) in [
        ("failures", "Calls of the shared store that failed", health.failures),
        ("retries", "Repetitions of calls of the shared store", health.retries),
    ] {
        new::<Counter>(&mut registry, name, help).inc_by(value);
    }
    registry
}

/// Returns a router with the route `/metrics`.
pub fn status_routes(metrics: &Metrics) -> Router {
    let metrics = metrics.clone();
    let text = move || async move {
        let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        ([(CONTENT_TYPE, kind)], metrics.text())
    };
    Router::new().route("/metrics", get(text))
}

//! What a server has done, for Prometheus.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

/// What requests are told apart by.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RequestLabels {
    /// `chat`, `responses`, `messages`, `gemini`, or `other`.
    pub protocol: &'static str,
    /// `ok`, `refused`, `failed`, `abandoned`, `rejected`.
    pub outcome: &'static str,
}

/// Counters of a proxy.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Arc<Registry>,
    /// Requests that came to their end.
    pub requests: Family<RequestLabels, Counter>,
    /// Tokens that clients sent.
    pub raw_tokens: Counter,
    /// Tokens that providers were sent.
    pub sent_tokens: Counter,
    /// Tokens of answers, as providers counted them.
    pub output_tokens: Counter,
    /// Compactions.
    pub compactions: Counter,
    /// Requests that were refused as too long, and went through smaller.
    pub recoveries: Counter,
    /// Seconds that were added before the provider was asked.
    pub added: Histogram,
    /// Conversations in memory.
    pub conversations: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("ctx");
        let requests = Family::default();
        let counter = Counter::default;
        let (raw_tokens, sent_tokens, output_tokens) = (counter(), counter(), counter());
        let (compactions, recoveries) = (counter(), counter());
        // From a tenth of a millisecond to about half a minute.
        let added = Histogram::new(exponential_buckets(0.0001, 2.0, 19));
        let conversations = Gauge::default();
        registry.register("requests", "Requests by protocol and outcome", requests.clone());
        registry.register("raw_tokens", "Tokens that clients sent", raw_tokens.clone());
        registry.register("sent_tokens", "Tokens that providers were sent", sent_tokens.clone());
        let words = "Tokens of answers, as providers counted them";
        registry.register("output_tokens", words, output_tokens.clone());
        registry.register("compactions", "Compactions", compactions.clone());
        let words = "Requests that were refused as too long and went through smaller";
        registry.register("recoveries", words, recoveries.clone());
        let words = "Time added before the provider was asked";
        registry.register_with_unit("added", words, Unit::Seconds, added.clone());
        registry.register("conversations", "Conversations in memory", conversations.clone());
        Self {
            registry: Arc::new(registry),
            requests,
            raw_tokens,
            sent_tokens,
            output_tokens,
            compactions,
            recoveries,
            added,
            conversations,
        }
    }
}

impl Metrics {
    /// Counts a request that came to its end.
    pub fn request(&self, protocol: &'static str, outcome: &'static str) {
        self.requests.get_or_create(&RequestLabels { protocol, outcome }).inc();
    }

    /// All of it, in the text form of OpenMetrics.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        if encode(&mut text, &self.registry).is_err() {
            // Writing into a text does not fail; a family that did would be left out.
            let _ = writeln!(text, "# EOF");
        }
        text
    }
}

/// `/healthz`, which says that the server answers, and `/metrics`.
pub fn status_routes(metrics: &Metrics) -> Router {
    let metrics = metrics.clone();
    let text = move || async move {
        let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        ([(CONTENT_TYPE, kind)], metrics.text())
    };
    Router::new().route("/healthz", get(|| async { "ok\n" })).route("/metrics", get(text))
}

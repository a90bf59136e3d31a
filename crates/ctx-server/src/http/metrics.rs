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
use prometheus_client::registry::{Metric, Registry, Unit};

/// What requests are told apart by.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RequestLabels {
    /// `chat`, `responses`, `messages`, `gemini`, or `other`.
    pub protocol: &'static str,
    /// `ok`, `refused`, `failed`, `abandoned`, `rejected`.
    pub outcome: &'static str,
}

/// What summaries are told apart by.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct SummaryLabels {
    /// `written`, `extracted`, `unasked`, `failed`, `unusable`.
    pub outcome: &'static str,
}

/// What broken prefixes are told apart by.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct BreakLabels {
    /// `compaction`, `edit`, `client`.
    pub cause: &'static str,
}

/// What was not written is told apart by.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct UnwrittenLabels {
    /// `conversation`, `record`.
    pub of: &'static str,
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
    /// Summaries of compactions.
    pub summaries: Family<SummaryLabels, Counter>,
    /// Requests that do not begin as the one before, and tokens of that one which providers may have
    /// had in their cache for nothing.
    pub prefix_breaks: Family<BreakLabels, Counter>,
    /// See [`Metrics::prefix_breaks`].
    pub prefix_lost_tokens: Family<BreakLabels, Counter>,
    /// What could not be written to disk.
    pub unwritten: Family<UnwrittenLabels, Counter>,
    /// Tool results that were left out, as their calls are not in the request.
    pub orphaned_results: Counter,
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
        let all = &mut registry;
        // From a tenth of a millisecond to about half a minute.
        let added = Histogram::new(exponential_buckets(0.0001, 2.0, 19));
        let words = "Time added before the provider was asked";
        all.register_with_unit("added", words, Unit::Seconds, added.clone());
        Self {
            requests: new(all, "requests", "Requests by protocol and outcome"),
            raw_tokens: new(all, "raw_tokens", "Tokens that clients sent"),
            sent_tokens: new(all, "sent_tokens", "Tokens that providers were sent"),
            output_tokens: new(all, "output_tokens", "Tokens of answers, as providers count them"),
            compactions: new(all, "compactions", "Compactions"),
            summaries: new(all, "summaries", "Summaries of compactions by outcome"),
            prefix_breaks: new(
                all,
                "prefix_breaks",
                "Requests that do not begin as the one before",
            ),
            prefix_lost_tokens: new(all, "prefix_lost_tokens", "Tokens that are not sent again"),
            unwritten: new(all, "unwritten", "Changes and records that were not written"),
            orphaned_results: new(
                all,
                "orphaned_results",
                "Tool results left out for want of calls",
            ),
            recoveries: new(all, "recoveries", "Requests refused as too long, taken smaller"),
            added,
            conversations: new(all, "conversations", "Conversations in memory"),
            registry: Arc::new(registry),
        }
    }
}

/// A metric that is registered.
fn new<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

impl Metrics {
    /// Counts a request that came to its end.
    pub fn request(&self, protocol: &'static str, outcome: &'static str) {
        self.requests.get_or_create(&RequestLabels { protocol, outcome }).inc();
    }

    /// Counts a compaction, and how its summary was come by where that is known.
    pub fn compaction(&self, summary: Option<&'static str>) {
        self.compactions.inc();
        if let Some(outcome) = summary {
            self.summaries.get_or_create(&SummaryLabels { outcome }).inc();
        }
    }

    /// Counts a request that does not begin as the one before.
    pub fn prefix_break(&self, cause: &'static str, tokens: u64) {
        let labels = BreakLabels { cause };
        self.prefix_breaks.get_or_create(&labels).inc();
        self.prefix_lost_tokens.get_or_create(&labels).inc_by(tokens);
    }

    /// Counts what could not be written.
    pub fn not_written(&self, of: &'static str, count: u64) {
        self.unwritten.get_or_create(&UnwrittenLabels { of }).inc_by(count);
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

/// `/metrics`.
pub fn status_routes(metrics: &Metrics) -> Router {
    let metrics = metrics.clone();
    let text = move || async move {
        let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        ([(CONTENT_TYPE, kind)], metrics.text())
    };
    Router::new().route("/metrics", get(text))
}

//! Metrics by the conventions of OpenTelemetry for generative AI, made of finished spans.

use std::time::Duration;

use opentelemetry::metrics::{Histogram, MeterProvider};
use opentelemetry::{Context, KeyValue, Value};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};

/// The number of bounds that the conventions set for durations and for tokens.
const BOUNDS: i32 = 14;

/// The attributes of a request's span that its metrics have too. Others, such as the conversation,
/// would make a series for each value.
const ATTRIBUTES: [&str; 5] = [
    "gen_ai.operation.name",
    "gen_ai.provider.name",
    "gen_ai.request.model",
    "gen_ai.response.model",
    "error.type",
];

/// Measures requests and compactions when their spans end.
#[derive(Debug)]
pub(super) struct SpanMetrics {
    durations: Histogram<f64>,
    tokens: Histogram<u64>,
    compacted: Histogram<u64>,
    coverage: Histogram<f64>,
}

impl SpanMetrics {
    pub(super) fn new(provider: &SdkMeterProvider) -> Self {
        let meter = provider.meter("ctx");
        let seconds = (0..BOUNDS).map(|n| 0.01 * 2f64.powi(n)).collect();
        let tokens = |name, words| {
            let histogram = meter.u64_histogram(name).with_unit("{token}").with_description(words);
            histogram.with_boundaries((0..BOUNDS).map(|n| 4f64.powi(n)).collect()).build()
        };
        Self {
            durations: meter
                .f64_histogram("gen_ai.client.operation.duration")
                .with_unit("s")
                .with_description("Duration of requests and turns")
                .with_boundaries(seconds)
                .build(),
            tokens: tokens("gen_ai.client.token.usage", "Tokens of requests"),
            compacted: tokens(
                "ctx.compaction.tokens",
                "Sizes of conversations before and after a compaction",
            ),
            coverage: meter
                .f64_histogram("ctx.audit.coverage")
                .with_unit("1")
                .with_description("Share of the required facts that a summary has")
                .with_boundaries((1..=20).map(|n| f64::from(n) / 20.0).collect())
                .build(),
        }
    }
}

impl SpanProcessor for SpanMetrics {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        for event in span.events.iter().filter(|event| event.name == "ctx.compaction") {
            for (name, when) in [
                ("ctx.compaction.tokens_before", "before"),
                ("ctx.compaction.tokens_after", "after"),
            ] {
                if let Some(tokens) = count(&event.attributes, name) {
                    self.compacted.record(tokens, &[KeyValue::new("ctx.compaction.when", when)]);
                }
            }
            if let Some(Value::F64(coverage)) = value(&event.attributes, "ctx.audit.coverage") {
                self.coverage.record(*coverage, &[]);
            }
        }
        if value(&span.attributes, "gen_ai.operation.name").is_none() {
            return;
        }
        let mut about: Vec<_> = span
            .attributes
            .iter()
            .filter(|attribute| ATTRIBUTES.contains(&attribute.key.as_str()))
            .cloned()
            .collect();
        let took = span.end_time.duration_since(span.start_time).unwrap_or_default();
        self.durations.record(took.as_secs_f64(), &about);
        for (name, kind) in
            [("gen_ai.usage.input_tokens", "input"), ("gen_ai.usage.output_tokens", "output")]
        {
            if let Some(tokens) = count(&span.attributes, name) {
                about.push(KeyValue::new("gen_ai.token.type", kind));
                self.tokens.record(tokens, &about);
                about.pop();
            }
        }
    }

    // The provider of the metrics is flushed and ended by itself.
    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

fn value<'a>(attributes: &'a [KeyValue], name: &str) -> Option<&'a Value> {
    attributes.iter().find(|attribute| attribute.key.as_str() == name).map(|found| &found.value)
}

fn count(attributes: &[KeyValue], name: &str) -> Option<u64> {
    match value(attributes, name)? {
        Value::I64(count) => u64::try_from(*count).ok(),
        _ => None,
    }
}

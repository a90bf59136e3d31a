//! Sends spans and metrics of this run to an OpenTelemetry collector over HTTP.

mod metrics;

use std::env;
use std::io::ErrorKind;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use ctx_model::{Client, Timeouts, Url};
use ctx_terminal::out::Out;
use opentelemetry::trace::TracerProvider;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{
    MetricExporter, RetryPolicy, SpanExporter, WithExportConfig, WithHttpConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::{Builder, Runtime};
use tracing::Level;
use tracing_opentelemetry::MetricsLayer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::Layer;

use self::metrics::SpanMetrics;
use crate::args::Command;
use crate::log::Layers;

/// The variable that names the collector.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// The variables that name it for one kind of data.
const TRACES: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
const METRICS: &str = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT";

/// The timeout of a request.
const REQUEST: Duration = Duration::from_millis(1_500);

/// How long the program waits at exit for unsent data.
const ENDING: Duration = Duration::from_secs(2);

/// Maximum number of bytes read of a collector's answer.
const ANSWER: usize = 64 * 1024;

/// The first reason why data was rejected.
type Refused = Arc<OnceLock<String>>;

/// Sends spans and metrics. Dropping it sends the pending ones.
pub(crate) struct Telemetry<'a> {
    provider: SdkTracerProvider,
    meters: SdkMeterProvider,
    refused: Refused,
    out: &'a Out,
}

/// Starts sending, if the environment names a collector. Otherwise nothing is set up; an
/// invalid collector causes a warning.
pub(crate) fn begin<'a>(
    command: &Command,
    out: &'a Out,
    layers: &mut Layers,
) -> Option<Telemetry<'a>> {
    let is_off = env::var("OTEL_SDK_DISABLED").is_ok_and(|v| v.eq_ignore_ascii_case("true"));
    let is_host = matches!(command, Command::EngineHost { .. } | Command::CommandHost(_));
    if is_off || is_host || !(is_named(TRACES) || is_named(METRICS) || is_named(ENDPOINT)) {
        return None;
    }
    let begun = Telemetry::new(out, layers);
    begun.inspect_err(|error| out.warn(format!("no spans and metrics are sent: {error}"))).ok()
}

fn is_named(variable: &str) -> bool {
    env::var_os(variable).is_some_and(|value| !value.is_empty())
}

impl<'a> Telemetry<'a> {
    /// Creates the exporters, and the layers that collect spans and counters.
    fn new(out: &'a Out, layers: &mut Layers) -> anyhow::Result<Self> {
        let refused = Refused::default();
        let resource = Resource::builder().with_service_name(service()).build();
        let mut meters = SdkMeterProvider::builder().with_resource(resource.clone());
        if is_named(METRICS) || is_named(ENDPOINT) {
            let exporter = to_collector(MetricExporter::builder().with_http(), &refused)?;
            meters = meters.with_periodic_exporter(exporter.build()?);
        }
        let meters = meters.build();
        let mut spans = SdkTracerProvider::builder()
            .with_span_processor(SpanMetrics::new(&meters))
            .with_resource(resource);
        if is_named(TRACES) || is_named(ENDPOINT) {
            let exporter = to_collector(SpanExporter::builder().with_http(), &refused)?;
            spans = spans.with_batch_exporter(exporter.build()?);
        }
        let provider = spans.build();
        // Only those of ctx. Libraries have spans too, even the library that sends spans.
        let own = Targets::new().with_target("ctx", Level::DEBUG);
        let spans = tracing_opentelemetry::layer()
            .with_location(false)
            .with_threads(false)
            .with_tracer(provider.tracer("ctx"));
        layers.push(spans.with_filter(own.clone()).boxed());
        layers.push(MetricsLayer::new(meters.clone()).with_filter(own).boxed());
        Ok(Self { provider, meters, refused, out })
    }
}

/// Sets how an exporter sends. It does not retry, which would delay the exit.
fn to_collector<B>(builder: B, refused: &Refused) -> std::io::Result<B>
where
    B: WithExportConfig + WithHttpConfig,
{
    let client = Collector::new(Arc::clone(refused))?;
    let builder = builder.with_http_client(client).with_retry_policy(RetryPolicy::disabled());
    Ok(builder.with_timeout(REQUEST))
}

impl Drop for Telemetry<'_> {
    fn drop(&mut self) {
        let spans = self.provider.shutdown_with_timeout(ENDING);
        let ended = self.meters.shutdown_with_timeout(ENDING).and(spans);
        let late = ended.err().map(|error| error.to_string());
        if let Some(why) = self.refused.get().cloned().or(late) {
            self.out.warn(format!("spans and metrics were not sent to the OTLP collector: {why}"));
        }
    }
}

/// The service name shown by the collector.
fn service() -> String {
    env::var("OTEL_SERVICE_NAME").ok().filter(|name| !name.is_empty()).unwrap_or("ctx".to_owned())
}

/// A client of the collector. As for models, it uses no proxy for a server on this machine.
#[derive(Debug)]
struct Collector {
    runtime: Runtime,
    client: Client,
    refused: Refused,
}

impl Collector {
    fn new(refused: Refused) -> std::io::Result<Self> {
        let timeouts =
            Timeouts { connect: REQUEST, first_byte: REQUEST, idle: REQUEST, whole: REQUEST };
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Self { runtime, client: Client::new(timeouts), refused })
    }

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (head, body) = request.into_parts();
        let url = Url::parse(&head.uri.to_string())?;
        if !matches!(url.scheme(), "http" | "https") {
            let why = format!("{ENDPOINT} must begin with http:// or https://");
            return Err(std::io::Error::new(ErrorKind::InvalidInput, why).into());
        }
        let request = ctx_model::Request { method: head.method, url, headers: head.headers, body };
        let mut answer = self.client.send(request).await?;
        if !answer.status.is_success() {
            let _ = self.refused.set(format!("it answered {}", answer.status));
        }
        let body = answer.body.read_up_to(ANSWER).await?;
        Ok(Response::builder().status(answer.status).body(body.into())?)
    }
}

#[async_trait]
impl HttpClient for Collector {
    /// The exporter calls it on its own thread, which blocks here.
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        self.runtime.block_on(self.send(request)).inspect_err(|error| {
            let _ = self.refused.set(error.to_string());
        })
    }
}

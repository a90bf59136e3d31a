//! Sends spans of this run to an OpenTelemetry collector over HTTP.

use std::env;
use std::io::ErrorKind;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use ctx_model::{Client, Timeouts, Url};
use ctx_terminal::out::Out;
use opentelemetry::trace::TracerProvider;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{RetryPolicy, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::{Builder, Runtime};
use tracing::Level;
use tracing_subscriber::Registry;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::Layer;

use crate::args::Command;
use crate::log::Layers;

/// The variables that may name the collector.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/// The timeout of a request.
const REQUEST: Duration = Duration::from_millis(1_500);

/// How long the program waits at exit for unsent spans.
const ENDING: Duration = Duration::from_secs(2);

/// Maximum number of bytes read of a collector's answer.
const ANSWER: usize = 64 * 1024;

/// The first reason why spans were rejected.
type Refused = Arc<OnceLock<String>>;

/// Sends spans. Dropping it sends the pending spans.
pub(crate) struct Traces<'a> {
    provider: SdkTracerProvider,
    refused: Refused,
    out: &'a Out,
}

/// Starts sending spans, if the environment names a collector. Otherwise nothing is set up; an
/// invalid collector causes a warning.
pub(crate) fn begin<'a>(
    command: &Command,
    out: &'a Out,
    layers: &mut Layers,
) -> Option<Traces<'a>> {
    let is_named = |name: &&str| env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_off = env::var("OTEL_SDK_DISABLED").is_ok_and(|v| v.eq_ignore_ascii_case("true"));
    let is_host = matches!(command, Command::EngineHost { .. } | Command::CommandHost(_));
    if is_off || is_host || !ENDPOINTS.iter().any(is_named) {
        return None;
    }
    let begun = Traces::new(out).map(|(traces, layer)| {
        layers.push(layer.boxed());
        traces
    });
    begun.inspect_err(|error| out.warn(format!("no spans are sent: {error}"))).ok()
}

impl<'a> Traces<'a> {
    /// Creates the exporter and the layer that collects spans.
    fn new(out: &'a Out) -> anyhow::Result<(Self, impl Layer<Registry> + use<>)> {
        let refused = Refused::default();
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Collector::new(Arc::clone(&refused))?)
            // A retry would delay the exit.
            .with_retry_policy(RetryPolicy::disabled())
            .with_timeout(REQUEST)
            .build()?;
        let resource = Resource::builder().with_service_name(service()).build();
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource)
            .build();
        let layer = tracing_opentelemetry::layer()
            .with_location(false)
            .with_threads(false)
            .with_tracer(provider.tracer("ctx"))
            // Only spans of ctx. Libraries have spans too, even the library that sends spans.
            .with_filter(Targets::new().with_target("ctx", Level::DEBUG));
        Ok((Self { provider, refused, out }, layer))
    }
}

impl Drop for Traces<'_> {
    fn drop(&mut self) {
        let ended = self.provider.shutdown_with_timeout(ENDING);
        let late = ended.err().map(|error| error.to_string());
        if let Some(why) = self.refused.get().cloned().or(late) {
            self.out.warn(format!("spans were not sent to the OTLP collector: {why}"));
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
            let why = format!("{} must begin with http:// or https://", ENDPOINTS[1]);
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

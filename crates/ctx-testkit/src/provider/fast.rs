//! An upstream for benchmarks: it answers at once, and does nothing else.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use ctx_core::{Error, ErrorKind, Result};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use tokio::net::TcpStream;

use super::api::Api;
use super::loopback::Loopback;
use super::wire::{Fault, Wire};

const CHAT: &str = "data: {\"id\":\"f\",\"object\":\"chat.completion.chunk\",\"created\":1767600000,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"ok\"},\"finish_reason\":null}]}\n\n\
    data: {\"id\":\"f\",\"object\":\"chat.completion.chunk\",\"created\":1767600000,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
    data: [DONE]\n\n";
const RESPONSES: &str = "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"f\",\"object\":\"response\",\"status\":\"in_progress\",\"output\":[]}}\n\n\
    event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":1,\"item_id\":\"m\",\"output_index\":0,\"content_index\":0,\"delta\":\"ok\"}\n\n\
    event: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":2,\"response\":{\"id\":\"f\",\"object\":\"response\",\"status\":\"completed\",\"output\":[{\"type\":\"message\",\"id\":\"m\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"ok\"}]}]}}\n\n";
const MESSAGES: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"f\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"stop_reason\":null,\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n\
    event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
    event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"ok\"}}\n\n\
    event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n\
    event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":1}}\n\n\
    event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
const GEMINI: &str = "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"ok\"}]},\"finishReason\":\"STOP\",\"index\":0}]}\r\n\r\n";

/// An upstream that answers each request with a small stream of events as soon as its body has
/// arrived. It parses no body, records no request, and listens on loopback until it is dropped.
///
/// ```
/// let upstream = ctx_testkit::provider::Fast::start()?;
/// assert!(upstream.url().starts_with("http://127.0.0.1:"));
/// assert_eq!((upstream.count(), upstream.bytes()), (0, 0));
/// # Ok::<(), ctx_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Fast {
    counts: Arc<Counts>,
    server: Loopback,
}

#[derive(Debug, Default)]
struct Counts {
    requests: AtomicU64,
    bytes: AtomicU64,
}

impl Fast {
    /// Starts it on its own thread, at a free port. When this returns, it is listening.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] if no port is free or no thread can be started.
    pub fn start() -> Result<Self> {
        let counts = Arc::new(Counts::default());
        let shared = Arc::clone(&counts);
        let serve = move |stream| serve(stream, Arc::clone(&shared));
        let server = Loopback::start("fast-upstream", 0, serve).map_err(|error| {
            Error::new(ErrorKind::Io, "the upstream cannot listen on loopback").source(error)
        })?;
        Ok(Self { counts, server })
    }

    /// Returns its address.
    pub fn address(&self) -> SocketAddr {
        self.server.address
    }

    /// Returns its URL, without a path and without a trailing slash.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Returns the number of requests.
    pub fn count(&self) -> u64 {
        self.counts.requests.load(Ordering::Relaxed)
    }

    /// Returns the total bytes of request bodies.
    pub fn bytes(&self) -> u64 {
        self.counts.bytes.load(Ordering::Relaxed)
    }
}

async fn serve(stream: TcpStream, counts: Arc<Counts>) {
    let service = service_fn(|request| {
        let counts = Arc::clone(&counts);
        async move { Ok::<_, Infallible>(answer(request, &counts).await) }
    });
    // A client that disconnects is not an error.
    let wire = Wire::new(stream, Fault::default());
    let _ = http1::Builder::new().serve_connection(wire, service).await;
}

async fn answer(
    request: hyper::Request<Incoming>,
    counts: &Counts,
) -> hyper::Response<Full<Bytes>> {
    let api = Api::of(request.method().as_str(), request.uri().path());
    let mut body = request.into_body();
    while let Some(Ok(frame)) = body.frame().await {
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        counts.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
    counts.requests.fetch_add(1, Ordering::Relaxed);
    let stream = match api {
        Some(Api::Responses) => RESPONSES,
        Some(Api::Messages) => MESSAGES,
        Some(Api::Gemini) => GEMINI,
        _ => CHAT,
    };
    let mut response = hyper::Response::new(Full::new(Bytes::from_static(stream.as_bytes())));
    let kind = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

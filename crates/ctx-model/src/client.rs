//! The HTTP client under chat, embeddings and the proxy: sends bytes, streams bytes back.

use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use ctx_core::{Error, ErrorKind, Result};
use reqwest::header::{CONTENT_LENGTH, HeaderMap, LOCATION, TRANSFER_ENCODING};
use reqwest::{Method, StatusCode, Url, redirect};
use tokio::time::{Instant, timeout_at};

use crate::endpoint::{is_loopback, shown};

/// Maximum number of redirects, all within the same server.
const REDIRECTS: usize = 3;

/// Timeouts of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// To connect. Default: 10 s.
    pub connect: Duration,
    /// Until the answer begins. Default: 120 s, because a local model reads a long prompt slowly.
    pub first_byte: Duration,
    /// Between two chunks of the answer. Default: 120 s, because some models think silently.
    pub idle: Duration,
    /// For the whole request. Default: 300 s, the time limit of a compaction.
    pub whole: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(120),
            idle: Duration::from_secs(120),
            whole: Duration::from_secs(300),
        }
    }
}

impl Timeouts {
    /// Timeouts for a conversation: an answer may take up to an hour as long as data keeps coming.
    #[must_use]
    pub fn conversation() -> Self {
        Self { whole: Duration::from_secs(3_600), ..Self::default() }
    }
}

/// A request.
#[derive(Clone)]
pub struct Request {
    /// Usually `POST`.
    pub method: Method,
    /// The URL.
    pub url: Url,
    /// Secret values must be marked as sensitive.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

ctx_core::partial_debug!(
    Request,
    it,
    method = it.method,
    url = shown(&it.url),
    headers = it.headers,
    bytes = it.body.len()
);

/// A response with any status.
#[derive(Debug)]
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, not yet read.
    pub body: Body,
}

/// A body that is read chunk by chunk, each with a timeout.
pub struct Body {
    inner: reqwest::Response,
    pub(crate) idle: Duration,
    whole: Duration,
    deadline: Instant,
}

ctx_core::partial_debug!(Body, it, idle = it.idle);

/// Sends requests. One client serves all providers and pools their connections.
///
/// Redirects are followed only within the same server, and only if they keep method and body, so a
/// key never reaches another host. Requests to this machine bypass proxies; other requests use the
/// proxy from the environment (`HTTPS_PROXY`, `NO_PROXY`).
///
/// Its calls need a tokio runtime with time and I/O enabled.
#[derive(Debug, Default)]
pub struct Client {
    timeouts: Timeouts,
    is_anonymous: bool,
    here: OnceLock<reqwest::Client>,
    elsewhere: OnceLock<reqwest::Client>,
}

impl Client {
    /// Creates a client with these timeouts. Opens no connection yet.
    #[must_use]
    pub fn new(timeouts: Timeouts) -> Self {
        Self { timeouts, ..Self::default() }
    }

    /// Adds no `user-agent` to requests without one, because other clients made them.
    #[must_use]
    pub fn anonymous(self) -> Self {
        Self { is_anonymous: true, ..self }
    }

    /// Sends a request and waits until the response begins.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Timeout`], or [`ErrorKind::Upstream`] if the server is not reached; both may be
    /// transient. An HTTP error status is not an error here: see [`Response::status`].
    pub async fn send(&self, request: Request) -> Result<Response> {
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(Error::new(ErrorKind::Contract, "a model was called outside of a runtime")
                .unbilled()
                .hint("call it from within a tokio runtime with time and I/O enabled"));
        }
        let server = server(&request.url);
        let began = Instant::now();
        let deadline = after(began, self.timeouts.whole);
        let client = self.client_for(&request.url)?;
        let sent = client
            .request(request.method, request.url)
            .headers(request.headers)
            .body(request.body)
            .send();
        let first = after(began, self.timeouts.first_byte).min(deadline);
        let response = match timeout_at(first, sent).await {
            Err(_) => return Err(late("to start its answer", first - began).with("server", server)),
            Ok(Err(error)) => return Err(unreached(error, self.timeouts.connect, &server)),
            Ok(Ok(response)) => response,
        };
        // Other 3xx statuses, such as 304, are not redirects.
        if matches!(response.status().as_u16(), 301..=303 | 307 | 308) {
            return Err(redirected(&response, &server));
        }
        if let Some(what) = broken(&response) {
            let hint = "check what the server, or a proxy before it, sends";
            return Err(Error::new(ErrorKind::Upstream, what).with("server", server).hint(hint));
        }
        Ok(Response {
            status: response.status(),
            headers: response.headers().clone(),
            body: Body {
                inner: response,
                idle: self.timeouts.idle,
                whole: self.timeouts.whole,
                deadline,
            },
        })
    }

    fn client_for(&self, url: &Url) -> Result<&reqwest::Client> {
        let here = is_loopback(url);
        let cell = if here { &self.here } else { &self.elsewhere };
        if let Some(client) = cell.get() {
            return Ok(client);
        }
        use_ring();
        let builder = reqwest::Client::builder()
            .connect_timeout(self.timeouts.connect)
            .redirect(redirect::Policy::custom(within_server))
            .referer(false);
        let builder = match self.is_anonymous {
            true => builder,
            false => builder.user_agent(concat!("ctx/", env!("CARGO_PKG_VERSION"))),
        };
        let builder = if here { builder.no_proxy() } else { builder };
        let client = builder.build().map_err(|e| {
            Error::new(ErrorKind::Io, "cannot set up the HTTP client")
                .unbilled()
                .hint("check that this machine has root certificates, and the proxy variables")
                .source(e.without_url())
        })?;
        Ok(cell.get_or_init(|| client))
    }
}

impl Body {
    /// Returns the next chunk; `None` at the end.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Timeout`], or [`ErrorKind::Upstream`] if the connection breaks; retryable.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>> {
        let idle = after(Instant::now(), self.idle);
        let until = idle.min(self.deadline);
        match timeout_at(until, self.inner.chunk()).await {
            Err(_) if idle < self.deadline => {
                Err(late("between two chunks of its answer", self.idle))
            }
            Err(_) => Err(late("for its whole answer", self.whole)),
            Ok(Err(error)) => Err(Error::new(ErrorKind::Upstream, "the connection broke off")
                .retryable()
                .hint("try again")
                .source(error.without_url())),
            Ok(Ok(chunk)) => Ok(chunk),
        }
    }

    /// Reads the whole body, or its first `limit` bytes; the rest is not read.
    ///
    /// # Errors
    ///
    /// See [`chunk`](Self::chunk).
    pub async fn read_up_to(&mut self, limit: usize) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            let room = limit - all.len();
            all.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if all.len() == limit {
                break;
            }
        }
        Ok(all)
    }
}

/// Returns the instant `wait`, but at most a year, after `start`.
fn after(start: Instant, wait: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    start.checked_add(wait.min(YEAR)).unwrap_or(start)
}

/// Installs the process-wide crypto provider that TLS needs, unless the host installed one.
fn use_ring() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Fails if another thread installed one first, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

fn within_server(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let origin = |url: &Url| (url.scheme().to_owned(), server(url));
    let same = attempt.previous().last().is_some_and(|last| origin(last) == origin(attempt.url()));
    if same && keeps_body(attempt.status()) && attempt.previous().len() <= REDIRECTS {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

fn server(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port_or_known_default() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

fn late(what: &str, waited: Duration) -> Error {
    Error::new(ErrorKind::Timeout, format!("the server took too long {what}"))
        .with("waited", format!("{:.1} s", waited.as_secs_f64()))
        .retryable()
        .hint("try again, or give it more time")
}

fn unreached(error: reqwest::Error, connect: Duration, server: &str) -> Error {
    let error = error.without_url();
    if error.is_connect() && error.is_timeout() {
        return late("to accept the connection", connect)
            .with("server", server)
            .unbilled()
            .source(error);
    }
    if error.is_builder() {
        return Error::new(ErrorKind::InvalidInput, "invalid request")
            .with("server", server)
            .hint("check the base URL and the headers of the provider")
            .source(error);
    }
    let is_reached = !error.is_connect();
    let (what, hint) = if !is_reached {
        ("the server cannot be reached", "check that it runs, its base URL, and the network")
    } else {
        ("the connection broke off before an answer", "try again")
    };
    let cause = root_cause(&error);
    let failed = Error::new(ErrorKind::Upstream, what)
        .with("server", server)
        .with("cause", cause)
        .retryable()
        .hint(hint)
        .source(error);
    // A server that received the prompt may have processed it, and may bill it.
    if is_reached { failed } else { failed.unbilled() }
}

/// Returns the root cause: `connection refused` is clearer than `error sending request`.
fn root_cause(error: &reqwest::Error) -> String {
    let mut deepest: &dyn std::error::Error = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}

/// Returns the malformed part of a response's head. Forwarding it would misreport the body.
fn broken(response: &reqwest::Response) -> Option<&'static str> {
    let has = |name| response.headers().contains_key(name);
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return Some("the server switched to another protocol, which was not requested");
    }
    (has(CONTENT_LENGTH) && has(TRANSFER_ENCODING))
        .then_some("the answer has both content-length and transfer-encoding")
}

fn redirected(response: &reqwest::Response, from: &str) -> Error {
    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    let to = location.and_then(|text| response.url().join(text).ok());
    let status = response.status();
    let is_here = to
        .as_ref()
        .is_some_and(|to| to.scheme() == response.url().scheme() && self::server(to) == from);
    let what = match (is_here, keeps_body(status)) {
        (true, true) => "too many redirects",
        (true, false) => "the server redirects to another path, which would drop the request body",
        (false, _) => "the server redirects to another host, which must not receive the key",
    };
    let error = Error::new(ErrorKind::Upstream, what)
        .unbilled()
        .with("server", from)
        .with("status", status.as_u16());
    match to {
        Some(to) => error
            .with("to", shown(&to))
            .hint("set the provider's base URL to the location of its API"),
        None => error.hint("check the provider's base URL"),
    }
}

fn keeps_body(status: StatusCode) -> bool {
    matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT)
}

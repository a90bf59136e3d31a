//! HTTP requests of model clients, made to fit on their way.
//!
//! ```text
//! body taken apart -> conversation -> engine -> body put together -> upstream
//!        <- bytes as they come <- held until the first content <-
//!                 overflow: compact, again, at most three times
//! ```
//!
//! What is no conversation passes as it is, and so does every answer. A request whose history need
//! not be touched goes out as the very bytes that came.

mod asked;
mod bearer;
mod body;
mod cached;
mod config;
mod conversation;
mod conversations;
mod ending;
mod failure;
mod fit;
mod group;
mod headers;
mod judge;
mod keep;
mod learned;
mod parts;
mod pass;
mod prepare;
mod recorded;
mod relay;
mod room;
mod sitting;
mod summaries;
mod summarised;
mod told;
mod undo;
mod upstream;
mod window;

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use ctx_core::{EntryId, Error, ErrorKind, Message, Result, Tokens};
use ctx_dialect::wire::route;
use ctx_model::{Client, Method, Timeouts};
use ctx_runtime::Memories;
use tokio::sync::Semaphore;

use crate::Host;
use crate::http::Metrics;
use crate::trace::Trace;
use conversations::{Conversations, Limits};
use group::Salt;
use keep::Keep;

pub use config::{ServerConfig, SummariesBy, TimeoutsConfig, UpstreamsConfig};
pub use upstream::{Family, Upstreams};

/// Bytes of conversations in memory, about. A conversation of a million tokens takes some twelve
/// million.
const MOST_BYTES: usize = 128 << 20;

/// So many large bodies are worked on at once, each on a thread of its own: fewer than there may be, as
/// some of that work waits for other such threads.
const LARGE_AT_ONCE: usize = 64;

/// So many warnings are remembered, to say each once.
const WARNINGS: usize = 1_000;

/// What a proxy is set up with.
pub struct Settings {
    /// The configuration and the home.
    pub host: Host,
    /// The section `server` of the configuration, with what the command line says over it.
    pub config: ServerConfig,
    /// Where requests go.
    pub upstreams: Upstreams,
    /// The window, whatever the model has.
    pub window: Option<Tokens>,
    /// The engine, instead of the configuration's.
    pub engine: Option<String>,
    /// The agent whose memory and engine it is.
    pub agent: Option<String>,
    /// Who is told what a person should know.
    pub warn: Box<dyn Fn(&str) + Send + Sync>,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings").field("config", &self.config).finish_non_exhaustive()
    }
}

/// A proxy.
#[derive(Debug)]
pub struct Proxy {
    settings: Settings,
    client: Client,
    /// Asks for summaries; it is not as patient.
    writer: Arc<Client>,
    salt: Salt,
    conversations: Arc<Conversations>,
    memories: Arc<Memories>,
    trace: Arc<Trace>,
    metrics: Metrics,
    seats: Arc<Semaphore>,
    space: body::Space,
    /// How many large bodies may be worked on at once.
    large: Arc<Semaphore>,
    warned: Mutex<HashSet<String>>,
    unwritten: Unwritten,
}

/// How much of what could not be written was told.
#[derive(Debug, Default)]
struct Unwritten {
    conversations: AtomicU64,
    records: AtomicU64,
}

impl Proxy {
    /// One that keeps what was cut in the home of its host, and records in `trace`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] where the home cannot be written to, and [`ErrorKind::Config`] where a model is
    /// to write summaries and none is configured.
    pub fn new(settings: Settings, trace: Arc<Trace>, metrics: Metrics) -> Result<Arc<Self>> {
        if settings.config.summaries == SummariesBy::Model {
            summaries::check_configured(&settings.host.config)?;
        }
        let folder = settings.host.home.root().join("proxy");
        let keep = match Keep::at(&folder) {
            Ok(keep) => Some(keep),
            Err(error) if error.kind() == ErrorKind::Locked => {
                (settings.warn)(&format!("what is cut here is forgotten at the end: {error}"));
                None
            }
            Err(error) => return Err(error),
        };
        let salt = Salt::of(&folder)?;
        let config = &settings.config;
        let limits = Limits { count: config.max_conversations as usize, bytes: MOST_BYTES };
        let seconds = |seconds: u32| Duration::from_secs(seconds.into());
        let timeouts = Timeouts {
            connect: seconds(config.timeouts.connect),
            first_byte: seconds(config.timeouts.first_byte),
            idle: seconds(config.timeouts.idle),
            whole: seconds(config.timeouts.whole),
        };
        Ok(Arc::new(Self {
            client: Client::new(timeouts).anonymous(),
            writer: Arc::new(Client::default()),
            salt,
            conversations: Arc::new(Conversations::new(limits, keep, trace.clone())),
            memories: Arc::default(),
            trace,
            metrics,
            seats: Arc::new(Semaphore::new(config.max_requests as usize)),
            space: body::Space::new(),
            large: Arc::new(Semaphore::new(LARGE_AT_ONCE)),
            warned: Mutex::default(),
            unwritten: Unwritten::default(),
            settings,
        }))
    }

    /// Its routes: all that is nobody else's, and `/healthz`. Metrics are beside it.
    pub fn router(self: &Arc<Self>) -> Router {
        Router::new().route("/healthz", get(health)).fallback(answer).with_state(self.clone())
    }

    /// What it counts.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// What it records.
    #[must_use]
    pub fn trace(&self) -> &Arc<Trace> {
        &self.trace
    }

    /// A message of a conversation that is in memory, as the client sent it.
    pub async fn message(&self, session: &str, entry: &str) -> Option<Arc<Message>> {
        let conversation = self.conversations.in_memory(session)?;
        let work = conversation.work.lock().await;
        let session = work.session.as_ref()?;
        let at = session.history.position(&EntryId::from(entry))?;
        session.history.items().get(at)?.entry.message().ok()
    }

    /// Takes back the compaction in force of a conversation, which is that of this entry: the next
    /// request is made of all messages, and cut anew where it has to be.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] where no such compaction is in force.
    pub async fn undo(&self, session: &str, entry: &str) -> Result<()> {
        undo::undo(self, session, entry).await
    }

    /// Waits until what was cut is on disk, and all records are.
    pub fn settle(&self) {
        self.trace.settle();
        if let Some(keep) = &self.conversations.keep {
            keep.settle();
        }
    }

    /// Says something once.
    fn warn(&self, text: &str) {
        self.warn_of(text, text);
    }

    /// Says something of a cause once, whatever the words.
    fn warn_of(&self, cause: &str, text: &str) {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.len() < WARNINGS && warned.insert(cause.to_owned()) {
            (self.settings.warn)(text);
        }
    }

    /// Counts what could not be written since this was last asked, and says so.
    fn note_unwritten(&self) {
        let kept = self.conversations.keep.as_ref().map_or(0, Keep::lost);
        for (of, lost, seen, what) in [
            ("conversation", kept, &self.unwritten.conversations, "what was cut of conversations"),
            ("record", self.trace.lost(), &self.unwritten.records, "records of requests"),
        ] {
            let before = seen.fetch_max(lost, Ordering::Relaxed);
            if lost > before {
                self.metrics.not_written(of, lost - before);
                self.warn_of(of, &format!(
                    "{what} cannot be written below {}, or not as fast as they come: they are left out \
                     (ctx_unwritten_total counts them)",
                    self.settings.host.home.root().join("proxy").display(),
                ));
            }
        }
    }
}

/// Says whether a request would be taken.
async fn health(State(proxy): State<Arc<Proxy>>) -> (StatusCode, &'static str) {
    match proxy.space.is_full() {
        false => (StatusCode::OK, "ok\n"),
        true => (StatusCode::SERVICE_UNAVAILABLE, "requests wait: no memory for bodies is left\n"),
    }
}

async fn answer(State(proxy): State<Arc<Proxy>>, request: Request) -> Response {
    if [Method::CONNECT, Method::TRACE].contains(request.method()) {
        let error =
            Error::new(ErrorKind::InvalidInput, "CONNECT and TRACE do not pass through here");
        return failure::answer(None, 405, &error.hint("set it as the base URL of a client"));
    }
    if headers::is_websocket(request.headers()) {
        // Codex asks this way first, and goes over to HTTP at once if told so.
        let error = Error::new(ErrorKind::InvalidInput, "WebSockets do not pass through here");
        let protocol = route("POST", request.uri().path()).map(|route| route.protocol);
        return failure::answer(protocol, 426, &error.hint("send the request over HTTP"));
    }
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    if upstream::climbs(path) {
        let error = Error::new(ErrorKind::InvalidInput, "the path of the request has `..` in it");
        return failure::answer(None, 400, &error.hint("it would lead out of the provider's API"));
    }
    match route(request.method().as_str(), path) {
        Some(route) => relay::relay(proxy, route, request).await,
        None => pass::pass(proxy, request).await,
    }
}

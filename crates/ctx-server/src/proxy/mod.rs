//! A proxy that makes the requests of model clients fit the window.
//!
//! ```text
//! body parsed -> conversation -> engine -> body rebuilt -> upstream
//!     <- bytes as they arrive <- held until the first content <-
//!              overflow: compact and retry, at most three times
//! ```
//!
//! Requests other than conversations and all answers pass unchanged. A request whose history needs
//! no change is forwarded byte for byte.

mod attempt;
mod background;
mod body;
mod cache_break;
mod client_compaction;
mod client_request;
mod client_summaries;
mod config;
mod conversation;
mod conversations;
mod cut_store;
mod failure;
mod fingerprint;
mod headers;
mod held_answer;
mod learned_window;
mod limits;
mod objects;
mod origin;
mod parallel;
mod passthrough;
mod pending;
mod prepare;
mod provider_compaction;
mod redacted;
mod relay;
mod replica;
mod retrieval;
mod send;
mod store;
mod stored_responses;
mod summary_models;
mod summary_record;
mod swap;
mod token_owner;
mod units;
mod upstream;
mod window_query;

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
use ctx_runtime::SharedMemories;
use ctx_trace::Trace;
use tokio::sync::Semaphore;

use crate::Host;
use crate::http::Metrics;
use client_compaction::OriginalItems;
use client_summaries::ClientSummaries;
use conversations::Conversations;
use cut_store::CutStore;
use fingerprint::Salt;
use store::ConversationStore;
use stored_responses::StoredResponses;

pub use client_compaction::{RestoredItems, SavedCompaction, SavedCompactions};
pub use config::{
    ClientCompaction, CompactionBy, RetrievalBy, ServerConfig, SummariesBy, TimeoutsConfig,
    UpstreamsConfig,
};
pub use replica::ReplicaStore;
pub use upstream::{Family, Upstreams};

/// Maximum number of large bodies processed concurrently on blocking threads; lower than the size
/// of the pool, because some of that work waits for other blocking threads.
const LARGE_AT_ONCE: usize = 64;

/// Maximum number of remembered warnings, each of which is shown once.
const WARNINGS: usize = 1_000;

/// The settings of a proxy.
pub struct Settings {
    /// The configuration and the home.
    pub host: Host,
    /// The section `server` of the configuration, with the overrides of the command line.
    pub config: ServerConfig,
    /// The providers that requests are sent to.
    pub upstreams: Upstreams,
    /// The window, overriding the model's.
    pub window: Option<Tokens>,
    /// The engine, overriding the configuration.
    pub engine: Option<String>,
    /// The agent whose memory and engine are used.
    pub agent: Option<String>,
    /// The store that replicas share; without one, conversations are files of this server.
    pub replicas: Option<ReplicaStore>,
    /// Receives warnings for the user.
    pub warn: Box<dyn Fn(&str) + Send + Sync>,
    /// Receives a line for each compaction, and for each refusal of the provider.
    pub note: Box<dyn Fn(&str) + Send + Sync>,
}

ctx_core::partial_debug!(Settings, it, config = it.config);

/// A proxy.
#[derive(Debug)]
pub struct Proxy {
    settings: Settings,
    client: Client,
    /// The client for summaries, with shorter timeouts.
    writer: Arc<Client>,
    salt: Salt,
    conversations: Arc<Conversations>,
    memories: Arc<SharedMemories>,
    trace: Arc<Trace>,
    metrics: Metrics,
    /// Limits the number of open requests.
    open_requests: Arc<Semaphore>,
    space: body::BodyMemory,
    /// Limits the number of large bodies processed concurrently.
    large: Arc<Semaphore>,
    /// Limits the number of compactions made in the background.
    background: Arc<Semaphore>,
    warned: Mutex<HashSet<String>>,
    unwritten: Unwritten,
    originals: OriginalItems,
    responses: StoredResponses,
    client_summaries: ClientSummaries,
    /// The providers that did not compact a history for their client.
    cannot_compact: Mutex<HashSet<Family>>,
    /// Whether Anthropic's provider refused a request with `context_management`.
    refuses_edits: AtomicBool,
    /// Whether OpenAI's provider has chat completions only.
    speaks_chat: AtomicBool,
    /// Whether it has answered a request of the Responses API.
    speaks_responses: AtomicBool,
}

/// The lost writes that were already reported.
#[derive(Debug, Default)]
struct Unwritten {
    conversations: AtomicU64,
    records: AtomicU64,
}

impl Proxy {
    /// Creates a proxy that saves cuts in the home of its host, and records requests in `trace`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] if the home is not writable, and [`ErrorKind::Config`] if a model should
    /// write summaries and none is configured.
    pub fn new(settings: Settings, trace: Arc<Trace>, metrics: Metrics) -> Result<Arc<Self>> {
        if settings.config.summaries == SummariesBy::Model {
            summary_models::check_configured(&settings.host.config)?;
        }
        let folder = settings.host.home.root.join("proxy");
        let store = cut_store(&settings, &folder)?;
        let (own, replicas) = (Salt::of(&folder)?, settings.replicas.clone());
        let salt = match &replicas {
            Some(replicas) => {
                metrics.set_store(replicas.store());
                own.of_replicas(replicas)?
            }
            None => own,
        };
        let saved = SavedCompactions::shared(&settings.host.home, replicas.clone());
        let config = &settings.config;
        let most = config.max_conversations as usize;
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
            conversations: Arc::new(Conversations::new(most, store, trace.clone())),
            memories: Arc::default(),
            trace,
            metrics,
            originals: OriginalItems::new(saved, salt.clone()),
            responses: StoredResponses::at(
                folder.join("responses"),
                salt.clone(),
                replicas.clone(),
            ),
            salt,
            client_summaries: ClientSummaries::at(folder.join("summaries"), replicas),
            cannot_compact: Mutex::default(),
            refuses_edits: AtomicBool::default(),
            speaks_chat: AtomicBool::default(),
            speaks_responses: AtomicBool::default(),
            open_requests: Arc::new(Semaphore::new(config.max_requests as usize)),
            space: body::BodyMemory::new(),
            large: Arc::new(Semaphore::new(LARGE_AT_ONCE)),
            background: Arc::new(Semaphore::new(background::AT_ONCE)),
            warned: Mutex::default(),
            unwritten: Unwritten::default(),
            settings,
        }))
    }

    /// Returns its routes: `/healthz`, and all paths without another route. Metrics have a separate
    /// router.
    pub fn router(self: &Arc<Self>) -> Router {
        Router::new().route("/healthz", get(health)).fallback(answer).with_state(self.clone())
    }

    /// Returns its metrics.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Returns its trace.
    pub fn trace(&self) -> &Arc<Trace> {
        &self.trace
    }

    /// Returns a message of a conversation in memory, as sent by the client.
    pub async fn message(&self, session: &str, entry: &str) -> Option<Arc<Message>> {
        let conversation = self.conversations.in_memory(session)?;
        let state = conversation.state.lock().await;
        let session = state.session.as_ref()?;
        let at = session.history.position(&EntryId::from(entry))?;
        session.history.items().get(at)?.entry.message().ok()
    }

    /// Undoes the compaction in force of a conversation, which must have this entry: the next
    /// request contains all messages again, and is cut again if necessary.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] if no such compaction is in force.
    pub async fn undo(&self, session: &str, entry: &str) -> Result<()> {
        let unknown = |what: &'static str| {
            Error::new(ErrorKind::NotFound, what)
                .with("session", session)
                .hint("only the compaction in force of a conversation in memory can be undone")
        };
        let closed = || unknown("the conversation is not in memory");
        let conversation = self.conversations.in_memory(session).ok_or_else(closed)?;
        let mut state = conversation.state.lock().await;
        let hosted = state.session.as_mut().ok_or_else(closed)?;
        let kept = hosted.in_force.as_ref().map(|kept| (&kept.id, &kept.compacted));
        if !kept.is_some_and(|(id, kept)| **id == *entry || *kept.first_kept_entry_id == *entry) {
            return Err(unknown("this compaction is not in force").with("compaction", entry));
        }
        hosted.undo();
        if let Some(store) = self.conversations.store.as_ref().filter(|_| conversation.is_stored())
        {
            state.save_undone(session, store).await?;
        }
        self.trace.undone(session, entry);
        Ok(())
    }

    /// Writes where the server listens into its home, for another server there.
    pub fn announce(&self, url: &str) {
        if let Some(store) = &self.conversations.store {
            store.announce(url);
        }
    }

    /// Waits until all cuts and records are on disk.
    pub fn settle(&self) {
        self.trace.settle();
        if let Some(store) = &self.conversations.store {
            store.settle();
        }
    }

    /// Whether ctx answers a request for a compaction without asking the provider.
    fn compacts(&self, family: Family) -> bool {
        let cannot = || self.cannot_compact.lock().unwrap_or_else(PoisonError::into_inner);
        match self.settings.config.compaction {
            CompactionBy::Auto => {
                let chats = family == Family::OpenAi && self.speaks_chat.load(Ordering::Relaxed);
                chats || cannot().contains(&family)
            }
            CompactionBy::Ctx => true,
            CompactionBy::Upstream => false,
        }
    }

    fn set_cannot_compact(&self, family: Family) {
        let mut cannot = self.cannot_compact.lock().unwrap_or_else(PoisonError::into_inner);
        if cannot.insert(family) {
            let url = self.settings.upstreams.base(family);
            self.warn(&format!("{url} does not compact histories for its clients: ctx does"));
        }
    }

    /// Shows a warning once.
    fn warn(&self, text: &str) {
        self.warn_of(text, text);
    }

    /// Shows a warning once per cause, regardless of its text.
    fn warn_of(&self, cause: &str, text: &str) {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.len() < WARNINGS && warned.insert(cause.to_owned()) {
            (self.settings.warn)(text);
        }
    }

    /// Counts the writes lost since the last call, and warns about them.
    fn note_unwritten(&self) {
        let cuts = self.conversations.store.as_ref().map_or(0, CutStore::lost);
        for (of, lost, seen, what) in [
            ("conversation", cuts, &self.unwritten.conversations, "cuts of conversations"),
            ("record", self.trace.lost(), &self.unwritten.records, "records of requests"),
        ] {
            let before = seen.fetch_max(lost, Ordering::Relaxed);
            if lost > before {
                self.metrics.not_written(of, lost - before);
                self.warn_of(
                    of,
                    &format!(
                        "{what} are lost: they cannot be written below {}, or not fast enough \
                         (ctx_unwritten_total counts them)",
                        self.settings.host.home.root.join("proxy").display(),
                    ),
                );
            }
        }
    }
}

/// Opens the store of cuts: that of the replicas, or the files of this server. `None` if another
/// server has the files.
fn cut_store(settings: &Settings, folder: &Path) -> Result<Option<CutStore>> {
    if let Some(replicas) = &settings.replicas {
        ctx_disk::lru::create_folder(folder)
            .map_err(ctx_disk::lru::unwritable("cannot store conversations", folder))?;
        replicas.expire();
        return Ok(Some(CutStore::Shared(replicas.clone())));
    }
    match ConversationStore::at(folder) {
        Ok(files) => Ok(Some(CutStore::Files(files))),
        Err(error) if error.kind() == ErrorKind::Locked => {
            (settings.warn)(&format!(
                "conversations of this server are in its memory only, and their cuts will be \
                 lost when it stops: {error}; give each server its own $CTX_HOME",
            ));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Reports whether a request would be accepted.
async fn health(State(proxy): State<Arc<Proxy>>) -> (StatusCode, &'static str) {
    let is_reachable = || proxy.metrics.store_health().is_none_or(|health| health.is_reachable);
    match proxy.space.is_full() {
        false if is_reachable() => (StatusCode::OK, "ok\n"),
        false => (StatusCode::OK, "ok, but the shared store cannot be reached: cuts stay here\n"),
        true => (
            StatusCode::SERVICE_UNAVAILABLE,
            "requests are waiting: the memory for bodies is exhausted\n",
        ),
    }
}

async fn answer(State(proxy): State<Arc<Proxy>>, request: Request) -> Response {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let family = Family::of_request(path, request.headers());
    let refused = |status, error: Error| {
        let route = route("POST", path).unwrap_or_else(|| family.route(path));
        failure::answer(&route, status, &error)
    };
    if [Method::CONNECT, Method::TRACE].contains(request.method()) {
        let error = Error::new(ErrorKind::InvalidInput, "CONNECT and TRACE are not supported");
        return refused(405, error.hint("set this server as the base URL of a client"));
    }
    if headers::is_websocket(request.headers()) {
        // Codex tries WebSocket first, and falls back to HTTP at once if refused.
        let error = Error::new(ErrorKind::InvalidInput, "WebSockets are not supported");
        return refused(426, error.hint("send the request over HTTP"));
    }
    if upstream::has_parent_segment(path) {
        let error = Error::new(ErrorKind::InvalidInput, "the request path contains `..`");
        return refused(400, error.hint("it would leave the provider's API"));
    }
    match route(request.method().as_str(), path) {
        Some(route) => relay::relay(proxy, route, request).await,
        None => passthrough::pass(proxy, request).await,
    }
}

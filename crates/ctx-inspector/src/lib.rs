//! The pages of ctx: the inspector, a page with a JSON API under `/api` that shows sessions request
//! by request, and the reports of `ctx replay`, `ctx eval` and `ctx stats` as
//! [files](pages).
//!
//! A source lists sessions, and opens each for its requests, entries and compactions.
//! [`replay::Replays`] is the source of transcripts (files, and the sessions of a home); the
//! records of a [`Proxy`] are the source of its conversations. Content from transcripts is
//! untrusted: it is sent as JSON, and a page inserts it as text.
//!
//! Anyone who reaches the server may read. Writing (undoing a compaction) requires the server's
//! token; a server without a token is read-only.

#![forbid(unsafe_code)]

mod diff;
mod events;
mod memory;
pub mod pages;
mod proxied;
pub mod replay;
mod response;
mod routes;
mod rows;
mod shape;
mod source;
mod text;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::Router;
use ctx_server::http::Shutdown;
use ctx_server::proxy::Proxy;
use ctx_trace::Trace;
use tokio::sync::Semaphore;

pub use memory::MemorySearch;
use proxied::Proxied;
use replay::Replays;
use source::Source;

/// Maximum number of pages that listen for changes.
const LISTENERS: usize = 64;

/// Serves the page and its API.
#[must_use]
pub struct Inspector {
    sources: Vec<Arc<dyn Source>>,
    /// The records of a proxy.
    trace: Option<Arc<Trace>>,
    memory: MemorySearch,
    has_token: bool,
    shutdown: Shutdown,
    listeners: Arc<Semaphore>,
}

impl Inspector {
    /// Creates an inspector of transcripts, which also searches memories. Its event streams end at
    /// `shutdown`.
    pub fn new(replays: Replays, memory: MemorySearch, shutdown: Shutdown) -> Self {
        Self::of(vec![Arc::new(replays)], memory, shutdown)
    }

    /// Creates an inspector of these sources, queried in order.
    fn of(sources: Vec<Arc<dyn Source>>, memory: MemorySearch, shutdown: Shutdown) -> Self {
        let listeners = Arc::new(Semaphore::new(LISTENERS));
        Self { sources, trace: None, memory, has_token: false, shutdown, listeners }
    }

    /// Adds the conversations of a proxy.
    pub fn with_proxy(mut self, proxy: Arc<Proxy>) -> Self {
        self.trace = Some(proxy.trace().clone());
        self.sources.insert(0, Arc::new(Proxied::of(proxy)));
        self
    }

    /// Enables writes for requests with the token, if the server has one.
    pub fn with_token(mut self, has_token: bool) -> Self {
        self.has_token = has_token;
        self
    }

    /// Returns the routes of the page at `/`, of its files below `/assets`, and of its API below
    /// `/api`; a server may use all other paths. Serve it with
    /// [`Bound::serve`](ctx_server::http::Bound::serve): writes require the `Access` that its
    /// guard grants.
    pub fn router(self) -> Router {
        pages::served::routes().merge(routes::routes(Arc::new(self)))
    }

    /// As [`Self::router`], for a server without other routes: unknown paths get a JSON error.
    pub fn router_alone(self) -> Router {
        self.router().fallback(routes::nothing)
    }
}

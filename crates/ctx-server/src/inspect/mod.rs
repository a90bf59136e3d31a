//! The inspector: what became of each request, as JSON under `/api` and as a page.
//!
//! A [`Source`] knows sessions; an [`Opened`] session answers for its requests, entries and
//! compactions. [`replay::Replays`] is the source of transcripts: files, and the sessions of a home.
//! Everything a source says comes from transcripts and is not to be trusted: it leaves as JSON, and
//! the page writes it as text.
//!
//! Reading asks for nothing. What writes (taking a compaction back) needs the token that the server
//! was started with; without one there is nothing that writes.

mod answer;
mod diff;
mod events;
mod memory;
mod page;
mod proxied;
pub mod replay;
mod routes;
mod rows;
mod shape;
mod source;
mod text;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::Router;
use tokio::sync::Semaphore;

use crate::http::Shutdown;

pub use diff::{DiffAsked, DiffPage};
pub use memory::MemorySearch;
pub use proxied::{Conversations, Proxied};
pub use shape::{
    CompactionRow, EntriesAsked, EntryAsked, EntryPage, EntryRow, LayerEdits, Overview, Part,
    Progress, RequestPage, RequestRow, SessionHead, Shown, SourceKind, Undone,
};
pub use source::{Opened, Source, State};
pub use text::parts;

/// So many pages may listen for what changes.
const LISTENERS: usize = 64;

/// Serves the page and its API.
pub struct Inspector {
    sources: Vec<Arc<dyn Source>>,
    memory: Option<MemorySearch>,
    has_token: bool,
    shutdown: Shutdown,
    listeners: Arc<Semaphore>,
}

impl std::fmt::Debug for Inspector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inspector").field("sources", &self.sources.len()).finish_non_exhaustive()
    }
}

impl Inspector {
    /// An inspector of these sources, which are asked in their order.
    #[must_use]
    pub fn new(sources: Vec<Arc<dyn Source>>) -> Self {
        Self {
            sources,
            memory: None,
            has_token: false,
            shutdown: Shutdown::default(),
            listeners: Arc::new(Semaphore::new(LISTENERS)),
        }
    }

    /// The same, which searches memories.
    #[must_use]
    pub fn with_memory(mut self, memory: MemorySearch) -> Self {
        self.memory = Some(memory);
        self
    }

    /// The same, in a server that has a token: it writes for who shows that.
    #[must_use]
    pub fn with_token(mut self, has_token: bool) -> Self {
        self.has_token = has_token;
        self
    }

    /// The same, whose streams of events end when the server does.
    #[must_use]
    pub fn with_shutdown(mut self, shutdown: Shutdown) -> Self {
        self.shutdown = shutdown;
        self
    }

    /// The page at `/`, what it loads below `/assets`, and its API below `/api`: these routes and no
    /// others, so that a server which has more to offer may use the rest of those paths. It is for
    /// [`Bound::serve`](crate::http::Bound::serve): nothing that writes is done without the
    /// [`Access`](crate::http::Access) that its guard gives.
    pub fn router(self) -> Router {
        page::routes().merge(routes::routes(Arc::new(self)))
    }

    /// The same for a server that offers nothing else, and says so.
    pub fn router_alone(self) -> Router {
        self.router().fallback(routes::nothing)
    }
}

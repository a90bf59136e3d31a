//! Where a command leaves what leaves the context, and what an engine keeps for later.

use std::path::Path;
use std::sync::Arc;

use ctx_core::{BlobStore, Store};
use ctx_session::Transcript;
use ctx_session::blobs::{FileBlobs, MemoryBlobs};
use ctx_session::key::FileId;
use ctx_session::paths::Home;
use ctx_session::values::{FileStore, PassingStore};

use crate::args::Fit;
use crate::selection;

/// Where large texts and an engine's values go.
pub(crate) struct Keeping {
    pub(crate) blobs: Arc<dyn BlobStore>,
    pub(crate) store: Arc<dyn Store>,
}

impl Keeping {
    /// Nothing is there before, and nothing stays: for trials over recorded sessions.
    pub(crate) fn nothing() -> Self {
        Self { blobs: Arc::<MemoryBlobs>::default(), store: Arc::<PassingStore>::default() }
    }

    /// What an engine kept of this session is there; what it does now stays where `lasts`. Without
    /// an id nobody could tell the session from others, and nothing stays of it.
    pub(crate) fn values(fit: &Fit, session: &Path, transcript: &Transcript, lasts: bool) -> Self {
        let home = Home::from_env();
        let (Ok(home), Some(_)) = (home, &transcript.header().id) else { return Self::nothing() };
        let agent = selection::agent(fit, session).and_then(|agent| FileId::new(agent).ok());
        let store = home.store_dir(&agent.unwrap_or_else(FileId::main));
        let store: Arc<dyn Store> = Arc::new(FileStore::at(store));
        match lasts {
            true => Self { store, ..Self::nothing() },
            false => Self { store: Arc::new(PassingStore::over(store)), ..Self::nothing() },
        }
    }

    /// The same, with large texts in files.
    pub(crate) fn with_files(self, home: &Home) -> Self {
        Self { blobs: Arc::new(FileBlobs::at(home.tool_results_dir(&FileId::main()))), ..self }
    }
}

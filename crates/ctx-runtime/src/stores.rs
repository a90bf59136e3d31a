//! Where what a session keeps goes, and the services that an engine is given.

use std::path::PathBuf;
use std::sync::Arc;

use ctx_core::{BlobStore, MemoryStore, Result, Services, Store, SummaryModels, WorkspaceSearch};
use ctx_session::blobs::{FileBlobs, MemoryBlobs};
use ctx_session::key::FileId;
use ctx_session::paths::Home;
use ctx_session::values::{FileStore, PassingStore};

use crate::{Memories, MemoryAt, Resolved, workspace_search};

/// Where what a session keeps goes.
#[derive(Clone)]
pub struct Stores {
    /// What its engine keeps.
    pub values: Arc<dyn Store>,
    /// Large texts.
    pub blobs: Arc<dyn BlobStore>,
    /// What is remembered of it.
    pub memory: MemoryAt,
    /// The folder with indexes of workspaces; without it none is searched.
    pub workspaces: Option<PathBuf>,
}

impl Stores {
    /// In the folders of an agent.
    #[must_use]
    pub fn of(home: &Home, agent: &FileId) -> Self {
        Self {
            values: Arc::new(FileStore::at(home.store_dir(agent))),
            blobs: Arc::new(FileBlobs::at(home.tool_results_dir(agent))),
            memory: MemoryAt::Folder(home.memory_dir(agent)),
            workspaces: Some(home.workspaces_dir(agent)),
        }
    }

    /// Nothing is there before, nothing stays, and no workspace is searched.
    #[must_use]
    pub fn passing() -> Self {
        Self {
            values: Arc::<PassingStore>::default(),
            blobs: Arc::<MemoryBlobs>::default(),
            memory: MemoryAt::Nowhere,
            workspaces: None,
        }
    }

    /// The services over these, with what was opened already.
    #[must_use]
    pub fn services(
        self,
        memory: Option<Arc<dyn MemoryStore>>,
        workspace: Option<Arc<dyn WorkspaceSearch>>,
        models: Option<SummaryModels>,
    ) -> Services {
        Services {
            store: Some(self.values),
            blobs: Some(self.blobs),
            memory,
            workspace,
            summary_models: models,
            ..Services::default()
        }
    }
}

impl Resolved {
    /// Opens memory and workspace of a session: what its engine is built with. `memories` are those of
    /// the process. What a person should be told goes to `warn`. It may load a model and read files:
    /// not for a thread that others wait for.
    ///
    /// # Errors
    ///
    /// Those of [`Resolved::memory`].
    pub fn services(
        &self,
        memories: &Memories,
        stores: Stores,
        names: (&str, &str),
        models: Option<SummaryModels>,
        mut warn: impl FnMut(String),
    ) -> Result<Services> {
        let memory =
            memories.of_session(self, &stores.memory, names, models.as_ref(), &mut warn)?;
        let indexes = stores.workspaces.as_deref();
        let workspace = indexes
            .and_then(|indexes| workspace_search(&self.config, indexes, self.counter, &mut warn));
        Ok(stores.services(memory, workspace, models))
    }
}

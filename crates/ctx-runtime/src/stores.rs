//! Where a session stores its data, and the services of an engine.

use std::path::PathBuf;
use std::sync::Arc;

use ctx_core::{BlobStore, MemoryStore, Result, Services, Store, SummaryModels, WorkspaceSearch};
use ctx_session::key::FileId;
use ctx_session::{FileBlobs, FileStore, Home, NoBlobs, TransientStore};

use crate::memory::{MemoryLocation, SharedMemories, workspace_search};
use crate::spec::Resolved;

/// Where a session stores its data.
#[derive(Clone)]
#[must_use]
pub struct Stores {
    /// The values of its engine.
    pub values: Arc<dyn Store>,
    /// Large texts.
    pub blobs: Arc<dyn BlobStore>,
    /// Its memory.
    pub memory: MemoryLocation,
    /// The folder with the indexes of workspaces; without it none is searched.
    pub workspaces: Option<PathBuf>,
}

impl Stores {
    /// Stores in the folders of an agent.
    pub fn of(home: &Home, agent: &FileId) -> Self {
        Self {
            values: Arc::new(FileStore::at(home.store_dir(agent))),
            blobs: Arc::new(FileBlobs::at(home.tool_results_dir(agent))),
            memory: MemoryLocation::Folder(home.memory_dir(agent)),
            workspaces: Some(home.workspaces_dir(agent)),
        }
    }

    /// Empty stores that keep nothing, without workspace search.
    pub fn discarding() -> Self {
        Self {
            values: Arc::<TransientStore>::default(),
            blobs: Arc::<NoBlobs>::default(),
            memory: MemoryLocation::InProcess,
            workspaces: None,
        }
    }

    /// Returns the services over these stores, with memory and workspace already opened.
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
    /// Opens the memory and the workspace of a session, and returns the services for its engine.
    /// `memories` belong to the process. Warnings for the user go to `warn`. It may load a model
    /// and read files: run it on a blocking thread.
    ///
    /// # Errors
    ///
    /// The errors of [`SharedMemories::of_session`](crate::SharedMemories::of_session).
    pub fn services(
        &self,
        memories: &SharedMemories,
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

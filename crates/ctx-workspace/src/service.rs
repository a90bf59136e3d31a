//! A workspace as a layer sees it.

use ctx_core::text::Slice;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ctx_core::{ErrorKind, Result, WorkspaceAnswer, WorkspaceSearch};

use crate::embed::embedding_of;
use crate::{IndexReport, Workspace};
use ctx_search::vectors::Embedding;
use ctx_search::{SegmentId, VectorModel, spawn_blocking, vectors_of};

/// The number of bytes a turn waits to be read; the rest is for `ctx index`.
const MOST_PER_TURN: u64 = 16 << 20;

/// How long a turn waits for files to be found.
const WITHIN: Duration = Duration::from_secs(1);

/// How many chunks a turn embeds, and how long it waits for them.
const CHUNKS_PER_TURN: usize = 32;
const VECTORS_WITHIN: Duration = Duration::from_secs(3);

/// The name of the threads that read and search.
const THREAD: &str = "ctx-workspace";

/// Searches a workspace, after updating its index as far as a turn can wait.
pub struct WorkspaceService {
    workspace: Arc<Workspace>,
    model: Option<VectorModel>,
}

impl WorkspaceService {
    /// Returns the service of a workspace. `model` computes vectors; without a model, or if the
    /// vectors' weight is 0, the score is lexical.
    #[must_use]
    pub fn new(workspace: Workspace, model: Option<VectorModel>) -> Self {
        let model = model.filter(|_| workspace.settings.vector_weight > 0.0);
        Self { workspace: Arc::new(workspace), model }
    }

    /// Returns the vector of a question, then embeds chunks without a vector. If the model fails
    /// for the question, it is not called again.
    async fn vector(
        &self,
        model: &VectorModel,
        query: &str,
    ) -> Result<((Embedding, Vec<f32>), Option<String>)> {
        let vector = self.workspace.vector_of(model, query).await?;
        let told = match self.embed(model).await {
            Ok(0) => None,
            Ok(left) => Some(format!(
                "{left} chunks of the workspace have no vector yet; run `ctx index {}`",
                self.workspace.folder.display()
            )),
            Err(error) => Some(format!("some chunks of the workspace have no vector: {error}")),
        };
        Ok((vector, told))
    }

    /// Embeds some chunks, and returns how many are left.
    async fn embed(&self, model: &VectorModel) -> Result<usize> {
        let (workspace, of) = (self.workspace.clone(), embedding_of(&*model.embedder));
        let waiting = move || -> Result<_> {
            let mut file = workspace.vector_file(of)?;
            let waiting = workspace.without_vector(&mut file)?;
            let some = waiting.slice(..CHUNKS_PER_TURN.min(waiting.len()));
            Ok((file, workspace.texts(some), waiting.len() - some.len()))
        };
        let (mut file, some, left) = spawn_blocking(THREAD, waiting).await??;
        let (ids, texts): (Vec<SegmentId>, Vec<String>) = some.into_iter().unzip();
        if !texts.is_empty() {
            let within = VECTORS_WITHIN.min(model.batch_deadline);
            let vectors = vectors_of(model, &texts, within).await?;
            let workspace = self.workspace.clone();
            spawn_blocking(THREAD, move || workspace.keep(&mut file, &ids, &vectors)).await??;
        }
        Ok(left)
    }
}

/// Updates the index, and returns a warning if files are left.
fn refresh(workspace: &Workspace) -> Option<String> {
    match workspace.refresh(MOST_PER_TURN, WITHIN) {
        Ok(IndexReport { left: 0, cut_short: false, .. }) => None,
        Ok(report) => Some(format!(
            "some files of the workspace are not indexed; run `ctx index {}`",
            report.folder.display()
        )),
        // The process that updates it keeps it as current as possible.
        Err(error) if error.kind() == ErrorKind::Locked => None,
        Err(error) => Some(format!("the index of the workspace was not updated: {error}")),
    }
}

#[async_trait]
impl WorkspaceSearch for WorkspaceService {
    async fn search(&self, query: &str, limit: usize) -> Result<WorkspaceAnswer> {
        let workspace = self.workspace.clone();
        let mut warnings =
            Vec::from_iter(spawn_blocking(THREAD, move || refresh(&workspace)).await?);
        let mut made = None;
        if let Some(model) = &self.model {
            match self.vector(model, query).await {
                Ok((vector, told)) => {
                    made = Some(vector);
                    warnings.extend(told);
                }
                Err(error) => warnings.push(format!("workspace search is lexical only: {error}")),
            }
        }
        let (workspace, query) = (self.workspace.clone(), query.to_owned());
        let search = move || -> Result<WorkspaceAnswer> {
            let vector = made.as_ref().map(|(embedding, vector)| (embedding, vector.as_slice()));
            let mut found = workspace.search(&query, limit, vector)?;
            if workspace.wants_check() {
                // Missing or damaged parts are rebuilt.
                warnings.extend(refresh(&workspace));
                found = workspace.search(&query, limit, vector)?;
            }
            Ok(WorkspaceAnswer { snippets: found.snippets, warnings })
        };
        spawn_blocking(THREAD, search).await?
    }
}

ctx_core::partial_debug!(WorkspaceService, it, workspace = it.workspace);

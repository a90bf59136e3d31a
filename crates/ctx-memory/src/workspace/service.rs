//! A workspace as a layer sees it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ctx_core::{ErrorKind, Result, WorkspaceAnswer, WorkspaceSearch};

use super::embed::embedding_of;
use super::{IndexReport, Workspace};
use crate::apart::apart;
use crate::store::vectors_of;
use crate::vectors::Embedding;
use crate::{SegmentId, VectorModel};

/// A turn does not wait for more than so many bytes to be read; the rest is for `ctx index`.
const MOST_PER_TURN: u64 = 16 << 20;

/// Nor longer than this for files to be found.
const WITHIN: Duration = Duration::from_secs(1);

/// Nor for more chunks to get a vector, nor longer than this for them.
const CHUNKS_PER_TURN: usize = 32;
const VECTORS_WITHIN: Duration = Duration::from_secs(3);

/// The threads that read and search.
const THREAD: &str = "ctx-workspace";

/// Searches a workspace, after bringing its index up to date as far as a turn can wait for that.
pub struct WorkspaceService {
    workspace: Arc<Workspace>,
    model: Option<VectorModel>,
}

impl WorkspaceService {
    /// The service of a workspace. `model` makes vectors; without one, or where they count nothing
    /// by the settings, words alone decide.
    #[must_use]
    pub fn new(workspace: Workspace, model: Option<VectorModel>) -> Self {
        let model = model.filter(|_| workspace.settings.vector_weight > 0.0);
        Self { workspace: Arc::new(workspace), model }
    }

    /// The workspace.
    #[must_use]
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// The vector of a question, after the chunks that have none got theirs. A model that does not
    /// answer the question is asked for no more.
    async fn vector(
        &self,
        model: &VectorModel,
        query: &str,
    ) -> Result<((Embedding, Vec<f32>), Option<String>)> {
        let vector = self.workspace.vector_of(model, query).await?;
        let told = match self.embed(model).await {
            Ok(0) => None,
            Ok(left) => Some(format!(
                "{left} chunks of the workspace have no vector yet: `ctx index {}` makes them",
                self.workspace.folder.display()
            )),
            Err(error) => Some(format!("not all of the workspace has vectors: {error}")),
        };
        Ok((vector, told))
    }

    /// Gives some chunks their vectors, and says how many are left.
    async fn embed(&self, model: &VectorModel) -> Result<usize> {
        let (workspace, of) = (self.workspace.clone(), embedding_of(&*model.embedder));
        let waiting = move || -> Result<_> {
            let mut file = workspace.vector_file(of)?;
            let waiting = workspace.without_vector(&mut file)?;
            let some = waiting.get(..CHUNKS_PER_TURN.min(waiting.len())).unwrap_or_default();
            Ok((file, workspace.texts(some), waiting.len() - some.len()))
        };
        let (mut file, some, left) = apart(THREAD, waiting).await??;
        let (ids, texts): (Vec<SegmentId>, Vec<String>) = some.into_iter().unzip();
        if !texts.is_empty() {
            let within = VECTORS_WITHIN.min(model.batch_deadline);
            let vectors = vectors_of(model, &texts, within).await?;
            let workspace = self.workspace.clone();
            apart(THREAD, move || workspace.keep(&mut file, &ids, &vectors)).await??;
        }
        Ok(left)
    }
}

/// Brings the index up to date, and says what is left.
fn refresh(workspace: &Workspace) -> Option<String> {
    match workspace.refresh(MOST_PER_TURN, WITHIN) {
        Ok(IndexReport { left: 0, cut_short: false, .. }) => None,
        Ok(report) => Some(format!(
            "not all of the workspace is indexed: `ctx index {}` does that",
            report.folder.display()
        )),
        // Whoever updates it makes it as new as it can be.
        Err(error) if error.kind() == ErrorKind::Locked => None,
        Err(error) => Some(format!("the workspace is as it was: {error}")),
    }
}

#[async_trait]
impl WorkspaceSearch for WorkspaceService {
    async fn search(&self, query: &str, limit: usize) -> Result<WorkspaceAnswer> {
        let workspace = self.workspace.clone();
        let mut warnings = Vec::from_iter(apart(THREAD, move || refresh(&workspace)).await?);
        let mut made = None;
        if let Some(model) = &self.model {
            match self.vector(model, query).await {
                Ok((vector, told)) => {
                    made = Some(vector);
                    warnings.extend(told);
                }
                Err(error) => warnings.push(format!("words alone decide what is found: {error}")),
            }
        }
        let (workspace, query) = (self.workspace.clone(), query.to_owned());
        let search = move || -> Result<WorkspaceAnswer> {
            let vector = made.as_ref().map(|(embedding, vector)| (embedding, vector.as_slice()));
            let mut found = workspace.search(&query, limit, vector)?;
            if workspace.wants_check() {
                // What was found missing or damaged is made anew.
                warnings.extend(refresh(&workspace));
                found = workspace.search(&query, limit, vector)?;
            }
            Ok(WorkspaceAnswer { snippets: found.snippets, warnings })
        };
        apart(THREAD, search).await?
    }
}

impl std::fmt::Debug for WorkspaceService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkspaceService")
            .field("workspace", &self.workspace)
            .finish_non_exhaustive()
    }
}

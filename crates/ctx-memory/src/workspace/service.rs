//! A workspace as a layer sees it.

use std::sync::Arc;

use async_trait::async_trait;
use ctx_core::{Embedder, ErrorKind, Result, WorkspaceAnswer, WorkspaceSearch};

use super::embed::embedding_of;
use super::{IndexReport, Workspace};

/// A turn does not wait for more than so many bytes to be read; the rest is for `ctx index`.
const MOST_PER_TURN: u64 = 16 << 20;

/// Searches a workspace, after bringing its index up to date as far as a turn can wait for that.
pub struct WorkspaceService {
    workspace: Workspace,
    embedder: Option<Arc<dyn Embedder>>,
}

impl WorkspaceService {
    /// The service of a workspace. `embedder` makes the vectors of questions; without one, words
    /// alone decide.
    #[must_use]
    pub fn new(workspace: Workspace, embedder: Option<Arc<dyn Embedder>>) -> Self {
        Self { workspace, embedder }
    }

    /// The workspace.
    #[must_use]
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    fn refresh(&self, answer: &mut WorkspaceAnswer) {
        match self.workspace.refresh(MOST_PER_TURN) {
            Ok(IndexReport { left: 0, .. }) => {}
            Ok(report) => answer.warnings.push(format!(
                "not all of the workspace is indexed: `ctx index {}` does that",
                report.folder.display()
            )),
            // Whoever updates it makes it as new as it can be.
            Err(error) if error.kind() == ErrorKind::Locked => {}
            Err(error) => answer.warnings.push(format!("the workspace is as it was: {error}")),
        }
    }
}

#[async_trait]
impl WorkspaceSearch for WorkspaceService {
    async fn search(&self, query: &str, limit: usize) -> Result<WorkspaceAnswer> {
        let mut answer = WorkspaceAnswer::default();
        self.refresh(&mut answer);
        let mut made = None;
        if let Some(embedder) = &self.embedder {
            match embedder.embed(&[query.to_owned()]).await {
                Ok(vectors) => {
                    made = vectors.into_iter().next().map(|v| (embedding_of(&**embedder), v));
                }
                Err(error) => {
                    answer.warnings.push(format!("words alone decide what is found: {error}"));
                }
            }
        }
        let vector = made.as_ref().map(|(embedding, vector)| (embedding, vector.as_slice()));
        let mut found = self.workspace.search(query, limit, vector)?;
        if self.workspace.wants_check() {
            // What was found missing or damaged is made anew.
            self.refresh(&mut answer);
            found = self.workspace.search(query, limit, vector)?;
        }
        answer.snippets = found.snippets;
        Ok(answer)
    }
}

impl std::fmt::Debug for WorkspaceService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkspaceService")
            .field("workspace", &self.workspace)
            .finish_non_exhaustive()
    }
}

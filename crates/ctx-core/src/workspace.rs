//! The files of a workspace, as a host offers them to layers.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::Result;

/// Where a snippet comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SnippetSource {
    /// What the agent wrote down for itself: `MEMORY.md` and `memory/*.md` of the workspace.
    Memory,
    /// What was said in sessions, by the archive.
    Sessions,
    /// Any other file of the workspace.
    Files,
}

impl SnippetSource {
    /// The name used in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sessions => "sessions",
            Self::Files => "files",
        }
    }
}

/// Lines that fit a question.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Snippet {
    /// Where they come from.
    pub source: SnippetSource,
    /// Their file, from the workspace's folder on, with `/` between folders.
    pub path: String,
    /// The first line, counted from 1.
    pub first_line: u32,
    /// The last line.
    pub last_line: u32,
    /// The lines, without secrets.
    pub text: String,
    /// How well they fit, 0 to 1.
    pub score: f32,
}

/// What a workspace has on a question.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkspaceAnswer {
    /// What fits, best first.
    pub snippets: Vec<Snippet>,
    /// What did not work; each is to be said once.
    pub warnings: Vec<String>,
}

/// The files of one workspace, to be searched.
#[async_trait]
pub trait WorkspaceSearch: Send + Sync {
    /// The `limit` snippets that fit a question best, of the files as they are now.
    async fn search(&self, query: &str, limit: usize) -> Result<WorkspaceAnswer>;
}

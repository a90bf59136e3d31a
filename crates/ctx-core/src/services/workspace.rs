//! The files of a workspace, as a host provides them to layers.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::Result;

/// The source of a snippet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SnippetSource {
    /// The agent's own notes: `MEMORY.md` and `memory/*.md` of the workspace.
    Memory,
    /// The archive of past sessions.
    Sessions,
    /// Any other file of the workspace.
    Files,
}

/// Lines that match a query.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Snippet {
    /// The source of the lines.
    pub source: SnippetSource,
    /// The path of the file relative to the workspace, with `/` as separator.
    pub path: String,
    /// The first line, counted from 1.
    pub first_line: u32,
    /// The last line.
    pub last_line: u32,
    /// The lines, with secrets redacted.
    pub text: String,
    /// The relevance, 0 to 1.
    pub score: f32,
}

/// The result of a workspace search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkspaceAnswer {
    /// The matches, best first.
    pub snippets: Vec<Snippet>,
    /// Warnings about failures, each to be reported once.
    pub warnings: Vec<String>,
}

/// A search over the files of one workspace.
#[async_trait]
pub trait WorkspaceSearch: Send + Sync {
    /// Returns the `limit` best matches for a query in the current files.
    async fn search(&self, query: &str, limit: usize) -> Result<WorkspaceAnswer>;
}

//! The workspace that a session's messages may ask for.

use std::path::Path;
use std::sync::Arc;

use ctx_core::{Counter, Embedder, Result, WorkspaceSearch};
use ctx_engine_registry::Config;
use ctx_layers::memory::workspace::{self, Workspace, WorkspaceService};

/// The search over the folder that `agents.defaults.workspace` names; `None` where it names none.
/// Indexes are kept in the folder `indexes`. `embedder` makes the vectors of questions; without one,
/// words alone decide.
///
/// # Errors
///
/// A configuration that makes no sense, or a folder that is not there: a host says so and goes on
/// without.
pub fn workspace_search(
    config: &Config,
    indexes: &Path,
    counter: Counter,
    embedder: Option<Arc<dyn Embedder>>,
) -> Result<Option<Arc<dyn WorkspaceSearch>>> {
    let folder: workspace::Folder = config.section()?;
    let Some(folder) = folder.path() else { return Ok(None) };
    let section: workspace::Config = config.section()?;
    let workspace = Workspace::open(indexes, &folder, section.settings(counter))?;
    Ok(Some(Arc::new(WorkspaceService::new(workspace, embedder))))
}

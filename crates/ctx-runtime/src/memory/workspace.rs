//! Searches the workspace that a session's messages refer to.

use std::path::Path;
use std::sync::Arc;

use ctx_config::Config;
use ctx_core::{Counter, Result, WorkspaceSearch};
use ctx_search::VectorModel;
use ctx_workspace::{self as workspace, Workspace, WorkspaceService};

use crate::models::vector_model;

/// Returns the search over the folder in `agents.defaults.workspace`; `None` if unset. Indexes are
/// stored in the folder `indexes`. Warnings for the user go to `warn`: for example, that a missing
/// folder is skipped.
pub(crate) fn workspace_search(
    config: &Config,
    indexes: &Path,
    counter: Counter,
    mut warn: impl FnMut(String),
) -> Option<Arc<dyn WorkspaceSearch>> {
    search(config, indexes, counter, &mut warn).unwrap_or_else(|error| {
        warn(format!("the workspace is not searched: {error}"));
        None
    })
}

fn search(
    config: &Config,
    indexes: &Path,
    counter: Counter,
    warn: impl FnMut(String),
) -> Result<Option<Arc<dyn WorkspaceSearch>>> {
    let folder: workspace::WorkspaceFolder = config.section()?;
    let access: workspace::WorkspaceAccess = config.section()?;
    let Some(folder) = folder.path()?.filter(|_| access != workspace::WorkspaceAccess::None) else {
        return Ok(None);
    };
    let section: workspace::Config = config.section()?;
    let workspace = Workspace::open(indexes, &folder, section.settings(counter))?;
    let model = workspace_model(config, warn)?;
    Ok(Some(Arc::new(WorkspaceService::new(workspace, model))))
}

/// Returns the embedding model for files: the model of `agents.defaults.memoryContext`, whether or
/// not memory is enabled; `None` for `hash`, and if vectors have no weight. An unavailable model is
/// reported as a warning.
///
/// # Errors
///
/// An invalid configuration.
pub fn workspace_model(
    config: &Config,
    mut warn: impl FnMut(String),
) -> Result<Option<VectorModel>> {
    let section: workspace::Config = config.section()?;
    if section.vector_weight <= 0.0 {
        return Ok(None);
    }
    let memory: ctx_memory::Config = config.section()?;
    let model = vector_model(config, &memory).unwrap_or_else(|error| {
        warn(format!("searching the workspace by words only, without vectors: {}", error.told()));
        None
    });
    Ok(model)
}

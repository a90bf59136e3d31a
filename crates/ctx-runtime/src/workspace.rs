//! The workspace that a session's messages may ask for.

use std::path::Path;
use std::sync::Arc;

use ctx_core::{Counter, Result, WorkspaceSearch};
use ctx_engine_registry::Config;
use ctx_memory::VectorModel;
use ctx_memory::workspace::{self, Workspace, WorkspaceService};

use crate::vector_model;

/// The search over the folder that `agents.defaults.workspace` names; `None` where it names none.
/// Indexes are kept in the folder `indexes`. What a person should be told goes to `warn`: a folder that
/// is not there is left out.
pub fn workspace_search(
    config: &Config,
    indexes: &Path,
    counter: Counter,
    mut warn: impl FnMut(String),
) -> Option<Arc<dyn WorkspaceSearch>> {
    search(config, indexes, counter, &mut warn).unwrap_or_else(|error| {
        warn(format!("the workspace is left out: {error}"));
        None
    })
}

fn search(
    config: &Config,
    indexes: &Path,
    counter: Counter,
    warn: impl FnMut(String),
) -> Result<Option<Arc<dyn WorkspaceSearch>>> {
    let folder: workspace::Folder = config.section()?;
    let access: workspace::Access = config.section()?;
    let Some(folder) = folder.path()?.filter(|_| access != workspace::Access::None) else {
        return Ok(None);
    };
    let section: workspace::Config = config.section()?;
    let workspace = Workspace::open(indexes, &folder, section.settings(counter))?;
    let model = workspace_model(config, warn)?;
    Ok(Some(Arc::new(WorkspaceService::new(workspace, model))))
}

/// The model that makes vectors of files: the one of `agents.defaults.memoryContext`, whether or not
/// there is a memory; `None` for `hash`, and where vectors count nothing. One that cannot be had is
/// told of.
///
/// # Errors
///
/// A configuration that makes no sense.
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
        warn(format!("words alone decide what of the workspace is found: {}", error.told()));
        None
    });
    Ok(model)
}

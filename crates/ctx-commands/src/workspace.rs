//! The workspace of a command.

use std::ops::ControlFlow;
use std::path::Path;

use ctx_config::{Config as Whole, SystemRules};
use ctx_core::Counter;
use ctx_runtime::workspace_model;
use ctx_search::VectorModel;
use ctx_session::Home;
use ctx_session::key::FileId;
use ctx_terminal::failure::misuse;
use ctx_terminal::out::Out;
use ctx_workspace::{Config, IndexReport, Progress, Workspace, WorkspaceFolder};
use indicatif::ProgressBar;

use crate::args::{Global, IndexOf};
use crate::setup;

/// A workspace, and how it is searched.
pub(crate) struct OpenWorkspace {
    pub(crate) workspace: Workspace,
    pub(crate) config: Config,
    pub(crate) counter: Counter,
    whole: Whole,
}

impl OpenWorkspace {
    /// Returns the embedding model, if one is configured.
    pub(crate) fn model(&self, out: &Out) -> anyhow::Result<Option<VectorModel>> {
        Ok(workspace_model(&self.whole, |warning| out.warn(warning))?)
    }
}

/// Opens the workspace in `folder`, or the configured one.
pub(crate) fn open(
    global: &Global,
    folder: Option<&Path>,
    of: &IndexOf,
) -> anyhow::Result<OpenWorkspace> {
    let mut config = setup::config(global)?;
    if let Some(profile) = of.profile {
        config = config.with_profile(profile);
    }
    let counter = config.section::<SystemRules>()?.counter;
    let counter = Counter { kind: of.counter.unwrap_or(counter.kind), ..counter };
    let configured = match folder {
        Some(_) => None,
        None => config.section::<WorkspaceFolder>()?.path()?,
    };
    let folder = folder.or(configured.as_deref()).unwrap_or(Path::new("."));
    let whole = config;
    let config: Config = whole.section()?;
    let agent: FileId = of.agent.parse().map_err(misuse)?;
    let indexes = Home::from_env()?.workspaces_dir(&agent);
    let workspace = Workspace::open(&indexes, folder, config.settings(counter))?;
    Ok(OpenWorkspace { workspace, config, counter, whole })
}

/// Updates the index of a workspace, and shows the progress.
pub(crate) fn update(workspace: &Workspace, out: &Out) -> anyhow::Result<IndexReport> {
    let bar = out.progress_of_bytes("indexing", 0);
    let updated = workspace.update(|progress| show(&bar, progress));
    bar.finish_and_clear();
    Ok(updated.map_err(ctx_session::with_home_hint)?)
}

/// Computes missing vectors, and shows the progress. Returns their number. If the model fails,
/// warns; finished vectors are kept, and the rest can be found by words.
pub(crate) fn embed(
    workspace: &Workspace,
    model: &VectorModel,
    out: &Out,
) -> anyhow::Result<usize> {
    let bar = out.progress("computing vectors", 0);
    let embedded = setup::block_on(async {
        Ok(workspace.embed(model, |progress| show(&bar, progress)).await)
    });
    bar.finish_and_clear();
    Ok(embedded?.unwrap_or_else(|error| {
        out.warn(format!("not all of the workspace has vectors: {error}"));
        0
    }))
}

fn show(bar: &ProgressBar, progress: Progress) -> ControlFlow<()> {
    bar.set_length(progress.all);
    bar.set_position(progress.done);
    ControlFlow::Continue(())
}

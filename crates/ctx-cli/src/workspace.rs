//! The workspace that a command is about.

use std::ops::ControlFlow;
use std::path::Path;

use ctx_core::Counter;
use ctx_engine_registry::Config as Whole;
use ctx_memory::VectorModel;
use ctx_memory::workspace::{Config, Folder, IndexReport, Progress, Workspace};
use ctx_runtime::workspace_model;
use ctx_session::key::FileId;
use ctx_session::paths::Home;
use indicatif::ProgressBar;

use crate::args::{Global, IndexOf};
use crate::failure::misuse;
use crate::out::Out;
use crate::setup;

/// A workspace, and how it is searched.
pub(crate) struct Opened {
    pub(crate) workspace: Workspace,
    pub(crate) config: Config,
    pub(crate) counter: Counter,
    whole: Whole,
}

impl Opened {
    /// The model that makes vectors, where the configuration names one.
    pub(crate) fn model(&self, out: &Out) -> anyhow::Result<Option<VectorModel>> {
        Ok(workspace_model(&self.whole, |warning| out.warn(warning))?)
    }
}

/// Opens the workspace in `folder`, or the one that the configuration names.
pub(crate) fn open(global: &Global, folder: Option<&Path>, of: &IndexOf) -> anyhow::Result<Opened> {
    let mut config = setup::config(global)?;
    if let Some(profile) = of.profile {
        config = config.with_profile(profile);
    }
    let profile = config.profile();
    let counter = match of.counter {
        Some(kind) => Counter::new(kind).with_profile_rules(profile),
        None => Counter::for_profile(profile),
    };
    let configured = match folder {
        Some(_) => None,
        None => config.section::<Folder>()?.path()?,
    };
    let folder = folder.or(configured.as_deref()).unwrap_or(Path::new("."));
    let whole = config;
    let config: Config = whole.section()?;
    let agent: FileId = of.agent.parse().map_err(misuse)?;
    let indexes = Home::from_env()?.workspaces_dir(&agent);
    let workspace = Workspace::open(&indexes, folder, config.settings(counter))?;
    Ok(Opened { workspace, config, counter, whole })
}

/// Brings the index of a workspace up to date, and shows how far that is.
pub(crate) fn update(workspace: &Workspace, out: &Out) -> anyhow::Result<IndexReport> {
    let bar = out.progress_of_bytes("indexing", 0);
    let updated = workspace.update(|progress| show(&bar, progress));
    bar.finish_and_clear();
    Ok(updated.map_err(ctx_session::paths::of_home)?)
}

/// Makes the vectors that are missing, and shows how far that is; says how many it made. A model that
/// fails is told of: what it made is kept, and words find the rest.
pub(crate) fn embed(
    workspace: &Workspace,
    model: &VectorModel,
    out: &Out,
) -> anyhow::Result<usize> {
    let bar = out.progress("making vectors", 0);
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

//! What can be asked of a workspace.

use std::path::PathBuf;

use clap::Args;
use ctx_core::{CounterKind, Profile};

use super::names;

/// Cuts the files into chunks and indexes their words. Files that .gitignore names, hidden, binary
/// and large ones are left out; a second run reads only what changed. The index is kept under
/// $CTX_HOME, and the folder itself is not touched.
#[derive(Debug, Args)]
pub(crate) struct Index {
    /// The folder [default: agents.defaults.workspace, else the current one]
    pub(crate) folder: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) of: IndexOf,
    /// Remove the index of the folder
    #[arg(long)]
    pub(crate) remove: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Brings the index of the folder up to date first.
#[derive(Debug, Args)]
pub(crate) struct Context {
    /// The question; /context, /remember or /recall may stand in front of it
    pub(crate) question: String,
    /// The folder [default: agents.defaults.workspace, else the current one]
    #[arg(long, short, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// The longest block in tokens; 4k is understood
    /// [default: agents.defaults.workspaceContext.budgetTokens]
    #[arg(long, value_name = "N")]
    pub(crate) budget: Option<String>,
    /// At most so many snippets [default: agents.defaults.workspaceContext.limit]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u32>,
    #[command(flatten)]
    pub(crate) of: IndexOf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Whose index it is, and how it is made.
#[derive(Debug, Args)]
pub(crate) struct IndexOf {
    /// The agent whose index it is
    #[arg(long, value_name = "ID", default_value = "main")]
    pub(crate) agent: String,
    /// Whose defaults [default: from the config]
    #[arg(long, short, value_name = "P", value_parser = names::profiles())]
    pub(crate) profile: Option<Profile>,
    /// How tokens are counted [default: the profile's]
    #[arg(long, short, value_name = "C", value_parser = names::counters())]
    pub(crate) counter: Option<CounterKind>,
}

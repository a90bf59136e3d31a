//! The arguments of `ctx index` and `ctx context`.

use std::path::PathBuf;

use clap::Args;
use ctx_config::Profile;
use ctx_core::CounterKind;

use super::names;

/// Cuts the files into chunks and indexes their words. Hidden, binary and large files and those in
/// .gitignore are skipped; a second run reads only changed files. The index is kept under
/// $CTX_HOME, and the folder itself is not changed.
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

/// Updates the index of the folder first.
#[derive(Debug, Args)]
pub(crate) struct Context {
    /// The question; /context, /remember or /recall may precede it
    #[arg(required = true)]
    pub(crate) question: Vec<String>,
    /// The folder [default: agents.defaults.workspace, else the current one]
    #[arg(long, short, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// The maximum size of the block in tokens; 4k is understood [default:
    /// agents.defaults.workspaceContext.budgetTokens]
    #[arg(long, value_name = "N")]
    pub(crate) budget: Option<String>,
    /// The maximum number of snippets [default: agents.defaults.workspaceContext.limit]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u32>,
    #[command(flatten)]
    pub(crate) of: IndexOf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The agent of the index, and how it is built.
#[derive(Debug, Args)]
pub(crate) struct IndexOf {
    /// The agent of the index
    #[arg(long, value_name = "ID", default_value = "main")]
    pub(crate) agent: String,
    /// The profile that sets the defaults [default: from the config]
    #[arg(long, short, value_name = "P", value_parser = names::profiles())]
    pub(crate) profile: Option<Profile>,
    /// How tokens are counted [default: the profile's]
    #[arg(long, short, value_name = "C", value_parser = names::counters())]
    pub(crate) counter: Option<CounterKind>,
}

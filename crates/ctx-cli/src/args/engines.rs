//! What can be asked of `ctx engines`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use ctx_engine_registry::Trust;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Engines {
    #[command(subcommand)]
    pub(crate) command: Option<EnginesCommand>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Show every place where engines were looked for, and what was passed over and why
    #[arg(long)]
    pub(crate) trace: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EnginesCommand {
    /// Install an engine: check it, copy it to $CTX_HOME/engines, and write its manifest
    Add(AddEngine),
    /// Remove an engine that was installed by `ctx engines add`
    Remove(RemoveEngine),
}

#[derive(Debug, Args)]
pub(crate) struct AddEngine {
    /// A library, a program, a script, or a folder with a manifest
    pub(crate) path: PathBuf,
    /// Its id, as it says it in its `hello` [default: as its file is named]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Where a library is to run; only printed as configuration, which is yours to write
    #[arg(long, value_name = "WHERE", default_value = "process")]
    pub(crate) trust: TrustIn,
    /// Ask nothing
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Replace an installed engine of that name
    #[arg(long)]
    pub(crate) force: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveEngine {
    /// Its id
    pub(crate) name: String,
    /// Ask nothing
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Where a library is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TrustIn {
    Process,
    InProcess,
}

impl From<TrustIn> for Trust {
    fn from(trust: TrustIn) -> Self {
        match trust {
            TrustIn::Process => Self::Process,
            TrustIn::InProcess => Self::InProcess,
        }
    }
}

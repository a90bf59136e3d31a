//! The arguments of `ctx engines`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use ctx_engine_registry::Trust;
use ctx_testkit::conformance::Level;

use super::names::one_of;

const TRUST: &[(&str, Trust)] = &[("process", Trust::Process), ("in-process", Trust::InProcess)];
const LEVELS: &[(&str, Level)] = &[("core", Level::Core), ("full", Level::Full)];

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Engines {
    #[command(subcommand)]
    pub(crate) command: Option<EnginesCommand>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Show every place that was searched for engines, and what was skipped and why
    #[arg(long)]
    pub(crate) trace: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EnginesCommand {
    /// Install an engine: check it, copy it to $CTX_HOME/engines, and write its manifest
    Add(AddEngine),
    /// Remove an engine that was installed by `ctx engines add`
    Remove(RemoveEngine),
    /// Run the conformance suite on an engine; the exit code is 1 if a case fails
    Check(CheckEngine),
}

#[derive(Debug, Args)]
pub(crate) struct AddEngine {
    /// A library, a program, a script, or a folder with a manifest
    pub(crate) path: PathBuf,
    /// Its id, as in its `hello` [default: its file name]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Where a library runs; ctx prints the configuration for it, and you add it to ctx.json5
    #[arg(long, value_name = "WHERE", default_value = "process", value_parser = one_of(TRUST))]
    pub(crate) trust: Trust,
    /// Do not ask for confirmation
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
    /// Do not ask for confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckEngine {
    /// The id of an engine, or a library, a program, a script, or a folder with a manifest
    #[arg(value_name = "PATH|NAME")]
    pub(crate) engine: PathBuf,
    /// How much is tested: core, which a minimal engine can pass, or full
    #[arg(long, value_name = "LEVEL", default_value = "core", value_parser = one_of(LEVELS))]
    pub(crate) level: Level,
    /// Its id, as in its `hello`, if a file is given [default: its file name]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Where a library runs; in-process, its crash ends the check
    #[arg(long, value_name = "WHERE", default_value = "process", value_parser = one_of(TRUST))]
    pub(crate) trust: Trust,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

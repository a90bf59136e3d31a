//! The arguments of `ctx store`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Create the schema in the database, or migrate it to this version
    Migrate(InStore),
    /// Check that the store can be used; with --conformance, that it keeps its contract
    Check(CheckStore),
    /// Show what the store has, and which host works on which session
    Status(InStore),
    /// Copy the sessions of the store to a home folder; repeat it to get what was added
    Export(ExportStore),
    /// Copy the sessions of this home to the store; repeat it after an interruption
    Import(InStore),
    /// Remove a session from the store and from the hosts; its agent's memory of it stays
    Remove(RemoveFromStore),
    /// Erase all that the store has of its tenant, and what hosts cache of it
    Erase(EraseStore),
    /// Delete the rows by which hosts learn of what was erased, once they are old
    Vacuum(VacuumStore),
}

#[derive(Debug, Args)]
pub(crate) struct InStore {
    /// The database [default: $CTX_STORE_URL, else store.url of the configuration]
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// The tenant [default: store.tenant of the configuration, else `default`]
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckStore {
    /// Run the behaviour suite, in a tenant of its own that it erases
    #[arg(long)]
    pub(crate) conformance: bool,
    #[command(flatten)]
    pub(crate) of: InStore,
}

#[derive(Debug, Args)]
pub(crate) struct ExportStore {
    /// The folder, which becomes a home of ctx
    #[arg(long, short, value_name = "FOLDER")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) of: InStore,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveFromStore {
    /// The session's key
    #[arg(value_name = "KEY")]
    pub(crate) key: String,
    /// The key again, to confirm
    #[arg(long, value_name = "KEY")]
    pub(crate) confirm: Option<String>,
    #[command(flatten)]
    pub(crate) of: InStore,
}

#[derive(Debug, Args)]
pub(crate) struct VacuumStore {
    /// Delete what is older than this number of days; a host that was away for longer may bring back what
    /// was erased
    #[arg(long, value_name = "N", default_value_t = 30)]
    pub(crate) days: u32,
    #[command(flatten)]
    pub(crate) of: InStore,
}

#[derive(Debug, Args)]
pub(crate) struct EraseStore {
    /// The name of the tenant again, to confirm
    #[arg(long, value_name = "NAME")]
    pub(crate) confirm: Option<String>,
    #[command(flatten)]
    pub(crate) of: InStore,
}

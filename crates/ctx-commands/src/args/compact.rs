//! The arguments of `ctx compact`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use ctx_core::IdentifierPolicy;

use super::{Fit, Summaries};

#[derive(Debug, Args)]
pub(crate) struct Compact {
    /// The transcript; with --dry-run also - for stdin
    pub(crate) session: PathBuf,
    #[command(flatten)]
    pub(crate) fit: Fit,
    #[command(flatten)]
    pub(crate) summaries: Summaries,
    /// What the summary should focus on
    #[arg(long, short, value_name = "TEXT", visible_alias = "focus")]
    pub(crate) instructions: Option<String>,
    /// What the summary does with identifiers [default: agents.defaults.compaction.identifierPolicy]
    #[arg(long, value_name = "POLICY")]
    pub(crate) identifiers: Option<Identifiers>,
    /// The target size of the session in tokens; 32k is understood
    #[arg(long, value_name = "N")]
    pub(crate) target: Option<String>,
    /// Compact even a session that is small enough
    #[arg(long)]
    pub(crate) force: bool,
    /// Show what would be done, and store nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Afterwards, rewrite the session as the summary and the kept messages, and archive the old
    /// file beside it; only for sessions of ctx; cannot be undone
    #[arg(long, conflicts_with_all = ["dry_run", "undo"])]
    pub(crate) rewrite: bool,
    /// Undo the newest compaction: restores the previous context
    #[arg(long, conflicts_with_all = [
        "dry_run", "force", "instructions", "identifiers", "target", "window", "engine", "agent",
        "profile", "counter", "model", "summary_model",
    ])]
    pub(crate) undo: bool,
    /// The compaction to undo, or a `ctx.undo` entry to revert that undo [default: the newest]
    #[arg(long, value_name = "ID", requires = "undo")]
    pub(crate) compaction: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What a summary does with identifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Identifiers {
    #[value(alias = "strict")]
    Preserve,
    Anonymize,
    Off,
}

impl From<Identifiers> for IdentifierPolicy {
    fn from(policy: Identifiers) -> Self {
        match policy {
            Identifiers::Preserve => Self::Preserve,
            Identifiers::Anonymize => Self::Anonymize,
            Identifiers::Off => Self::Off,
        }
    }
}

//! The arguments of `ctx memory` and `ctx recall`.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::{ArgGroup, Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum MemoryCommand {
    /// Archive the messages of transcripts and their facts; archived messages are not stored twice
    Ingest(Ingest),
    /// Show the size of a memory
    Stats(InMemory),
    /// Search archived messages
    Search(SearchMemory),
    /// List the known facts, or those that match a question
    Facts(Facts),
    /// Erase messages: from the transcript's view, the archive, and all data derived from them
    Forget(ForgetArgs),
    /// Rebuild the index from the archive
    Rebuild(InMemory),
}

#[derive(Debug, Args)]
pub(crate) struct InMemory {
    /// The agent whose memory is used
    #[arg(long, value_name = "ID", default_value = "main")]
    pub(crate) agent: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Ingest {
    /// Transcripts in any format that ctx reads, folders of them, or ids [default: the newest session of
    /// the current folder]
    #[arg(value_name = "SESSION")]
    pub(crate) sessions: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) of: InMemory,
}

#[derive(Debug, Args)]
pub(crate) struct SearchMemory {
    /// The words
    #[arg(required = true)]
    pub(crate) query: Vec<String>,
    /// Only messages of this session: its key, its id, or the path of its transcript [default: all
    /// sessions of the agent]
    #[arg(long, value_name = "KEY")]
    pub(crate) session: Option<String>,
    /// At most this many hits
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = at_least_one())]
    pub(crate) limit: usize,
    /// Show the components of each score
    #[arg(long)]
    pub(crate) explain: bool,
    #[command(flatten)]
    pub(crate) of: InMemory,
}

#[derive(Debug, Args)]
pub(crate) struct Facts {
    /// The question [default: list them all, newest first]
    pub(crate) query: Option<String>,
    /// Include facts that are no longer valid
    #[arg(long)]
    pub(crate) all: bool,
    /// Only facts of this session: its key, its id, or the path of its transcript
    #[arg(long, value_name = "KEY")]
    pub(crate) session: Option<String>,
    /// At most this many
    #[arg(long, value_name = "N", value_parser = at_least_one())]
    pub(crate) limit: Option<usize>,
    #[command(flatten)]
    pub(crate) of: InMemory,
}

/// Shows first what would be erased, and asks. Sessions of ctx are rewritten without the erased
/// messages. Files of other programs are not changed: ctx ignores the erased messages in them, and
/// lists these files.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").required(true).multiple(true).args([
    "entries", "session", "matching", "project",
])))]
pub(crate) struct ForgetArgs {
    /// Transcripts to search besides those under $CTX_HOME and those with an overlay of ctx
    #[arg(value_name = "TRANSCRIPT")]
    pub(crate) files: Vec<PathBuf>,
    /// A message, by the id of its entry or an unambiguous prefix of it; may be given several times
    #[arg(long = "entry", value_name = "ID")]
    pub(crate) entries: Vec<String>,
    /// A whole session, by its key, its id or its path; limits --entry and --matching to it
    #[arg(long, value_name = "KEY")]
    pub(crate) session: Option<String>,
    /// Every message that contains this text, ignoring case
    #[arg(long, value_name = "TEXT")]
    pub(crate) matching: Option<String>,
    /// Everything archived from other agents' sessions in this folder and its subfolders; these
    /// sessions are not archived again
    #[arg(long, value_name = "DIR", conflicts_with_all = ["files", "entries", "session", "matching"])]
    pub(crate) project: Option<PathBuf>,
    /// Show what would be erased, and erase nothing
    #[arg(long, conflicts_with = "yes")]
    pub(crate) dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Only from this agent's memory and sessions, and from the overlays of other programs' files,
    /// which belong to no agent [default: every agent's]
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RecallArgs {
    /// The question
    #[arg(required = true)]
    pub(crate) query: Vec<String>,
    /// The session that asks: its key, its id, or the path of its transcript
    #[arg(long, value_name = "KEY", required_unless_present = "all_sessions")]
    pub(crate) session: Option<String>,
    /// Recall from all sessions of the agent [default: memoryContext.crossSession]
    #[arg(long)]
    pub(crate) all_sessions: bool,
    /// The maximum size of the block, in tokens; 2k is understood [default: memoryContext.hardCapTokens]
    #[arg(long, value_name = "N")]
    pub(crate) budget: Option<String>,
    #[command(flatten)]
    pub(crate) of: InMemory,
}

/// Parses a number of results, at least 1.
fn at_least_one() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..)
}

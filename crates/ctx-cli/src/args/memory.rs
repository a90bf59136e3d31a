//! What can be asked of `ctx memory` and `ctx recall`.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::{ArgGroup, Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct Memory {
    #[command(subcommand)]
    pub(crate) command: MemoryCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MemoryCommand {
    /// Archive the messages of transcripts, and the facts in them; what is there already stays once
    Ingest(Ingest),
    /// Say how much a memory holds
    Stats(InMemory),
    /// Search what was said
    Search(SearchMemory),
    /// List what is known, or what of it fits a question
    Facts(Facts),
    /// Erase what was said: from the transcript's view, the archive, and all that was drawn from it
    Forget(ForgetArgs),
    /// Make the index anew from the archive
    Rebuild(InMemory),
}

#[derive(Debug, Args)]
pub(crate) struct InMemory {
    /// Whose memory
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
    pub(crate) query: String,
    /// Only what was said in this session: its key, its id, or the path of its transcript [default: all
    /// sessions of the agent]
    #[arg(long, value_name = "KEY")]
    pub(crate) session: Option<String>,
    /// At most this many hits
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = at_least_one())]
    pub(crate) limit: usize,
    /// Show what each score is made of
    #[arg(long)]
    pub(crate) explain: bool,
    #[command(flatten)]
    pub(crate) of: InMemory,
}

#[derive(Debug, Args)]
pub(crate) struct Facts {
    /// The question [default: list them all, newest first]
    pub(crate) query: Option<String>,
    /// Those that no longer hold as well
    #[arg(long)]
    pub(crate) all: bool,
    /// Only what was said in this session: its key, its id, or the path of its transcript
    #[arg(long, value_name = "KEY")]
    pub(crate) session: Option<String>,
    /// At most this many
    #[arg(long, value_name = "N", value_parser = at_least_one())]
    pub(crate) limit: Option<usize>,
    #[command(flatten)]
    pub(crate) of: InMemory,
}

/// Says first what would go, and asks. Sessions of ctx are written anew without it; a file of another
/// program is not written: ctx reads it there no more, and names the file.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").required(true).multiple(true).args([
    "entries", "session", "matching", "project",
])))]
pub(crate) struct ForgetArgs {
    /// Transcripts to look into besides those under $CTX_HOME and those ctx keeps something beside
    #[arg(value_name = "TRANSCRIPT")]
    pub(crate) files: Vec<PathBuf>,
    /// A message, by the id of its entry or a beginning that no other has; may be given several times
    #[arg(long = "entry", value_name = "ID")]
    pub(crate) entries: Vec<String>,
    /// All of a session, by its key, its id or its path; with --entry or --matching, only in it
    #[arg(long, value_name = "KEY")]
    pub(crate) session: Option<String>,
    /// Every message that holds this text, whatever the case of its letters
    #[arg(long, value_name = "TEXT")]
    pub(crate) matching: Option<String>,
    /// What was archived of the sessions of other agents in this folder or below it; they are not archived
    /// again
    #[arg(long, value_name = "DIR", conflicts_with_all = ["files", "entries", "session", "matching"])]
    pub(crate) project: Option<PathBuf>,
    /// Show what would go, and erase nothing
    #[arg(long, conflicts_with = "yes")]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Only from this agent's memory and sessions, and from what ctx keeps beside the files of other
    /// programs: those are of no agent [default: every agent's]
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RecallArgs {
    /// What is being asked
    pub(crate) query: String,
    /// The session that asks: its key, its id, or the path of its transcript
    #[arg(long, value_name = "KEY", required_unless_present = "all_sessions")]
    pub(crate) session: Option<String>,
    /// Recall what was said in any session of the agent [default: memoryContext.crossSession]
    #[arg(long)]
    pub(crate) all_sessions: bool,
    /// The longest block, in tokens; 2k is understood [default: memoryContext.hardCapTokens]
    #[arg(long, value_name = "N")]
    pub(crate) budget: Option<String>,
    #[command(flatten)]
    pub(crate) of: InMemory,
}

/// A number of answers: of none, nothing would be said.
fn at_least_one() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..)
}

//! The definition of the command line, without effects.

mod chat;
mod compact;
mod config;
mod engines;
mod eval_compact;
mod fit;
mod help;
mod inspect;
mod mcp;
mod memory;
mod names;
mod recall;
mod serve;
mod setup;
mod stats;
mod store;
mod workspace;

use std::path::PathBuf;

use anstream::ColorChoice;
use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum};
use ctx_config::Profile;
use ctx_core::CounterKind;

pub(crate) use chat::{Chat, CommandHost, Tool};
pub(crate) use compact::Compact;
pub(crate) use config::Config;
pub(crate) use engines::{AddEngine, CheckEngine, Engines, EnginesCommand, RemoveEngine};
pub(crate) use eval_compact::EvalCompact;
pub(crate) use fit::{Fit, Summaries};
pub(crate) use help::command;
pub(crate) use inspect::Inspect;
pub(crate) use mcp::Mcp;
pub(crate) use memory::{
    Facts, ForgetArgs, InMemory, Ingest, MemoryCommand, RecallArgs, SearchMemory,
};
pub(crate) use recall::{EmbedWith, EvalCommand, EvalRecall};
pub(crate) use serve::Serve;
pub(crate) use setup::{Doctor, Run, Setup};
pub(crate) use stats::Stats;
pub(crate) use store::{
    CheckStore, EraseStore, ExportStore, InStore, RemoveFromStore, StoreCommand, VacuumStore,
};
pub(crate) use workspace::{Context, Index, IndexOf};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Global flags are listed after the command's own.
const GLOBAL: &str = "Global options";

/// Keeps a long-running LLM agent inside its model's context window, and shows how.
#[derive(Debug, Parser)]
#[command(name = "ctx", version, styles = STYLES, propagate_version = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Flags of every command.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// The configuration file [default: ctx.json5 in $CTX_HOME, else in ~/.ctx]
    #[arg(long, global = true, value_name = "FILE", help_heading = GLOBAL, display_order = 901)]
    pub(crate) config: Option<PathBuf>,
    /// Less output: no progress, no notes; warnings and errors stay
    #[arg(long, short, global = true, help_heading = GLOBAL, display_order = 900)]
    pub(crate) quiet: bool,
    /// Append the log to a file; RUST_LOG sets its level and, without this flag, sends it to stderr
    #[arg(long, global = true, value_name = "FILE", help_heading = GLOBAL, display_order = 903)]
    pub(crate) log_file: Option<PathBuf>,
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    #[arg(help_heading = GLOBAL, display_order = 902, value_parser = names::one_of(COLOURS))]
    pub(crate) color: ColorChoice,
}

const COLOURS: &[(&str, ColorChoice)] =
    &[("auto", ColorChoice::Auto), ("always", ColorChoice::Always), ("never", ColorChoice::Never)];

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Talk with a model in a session that stays inside its window
    Chat(Chat),
    /// Replay a transcript request by request, and compare each request with and without ctx
    Replay(Replay),
    /// Compare profiles, engines and other agents' policies over transcripts; or measure recall
    Eval(Eval),
    /// Serve a page that shows sessions request by request, and follows active ones
    Inspect(Inspect),
    /// Show what a session contains, and how full its context is
    Status(Status),
    /// Print the messages of the next request, and the manifest of what was dropped
    Assemble(Assemble),
    /// Replace old history by a verified summary, and store it; or undo a compaction
    Compact(Compact),
    /// List the compactions of a session, with what each covered and kept, or those of the proxy
    Compactions(Compactions),
    /// Show what a compaction removed from the context, and which facts were kept
    Diff(Diff),
    /// Print the original messages behind a citation of a summary, or a compaction
    Expand(Expand),
    /// Show where a line of a summary or a fact comes from: its messages, and their place in the file
    #[command(visible_alias = "explain")]
    Why(Why),
    /// List the sessions of all agents, newest first; archive sessions of ctx that are old or too many
    Sessions(Sessions),
    /// Write a transcript in another format
    Convert(Convert),
    /// Check a transcript for damage, and write a repaired copy
    Check(Check),
    /// Archive, search and forget messages: an agent's long-term memory
    #[command(subcommand)]
    Memory(MemoryCommand),
    /// Print the block that memory would insert into a request
    Recall(RecallArgs),
    /// Index the files of a folder, so that messages can refer to them
    Index(Index),
    /// Print the parts of workspace files that match a question, as a request would contain them
    Context(Context),
    /// List the engines, built in and installed, and the layers; install and remove engines
    Engines(Engines),
    /// Run a proxy between any agent and its provider that keeps requests inside the window
    Serve(Serve),
    /// Run a client through the proxy, for this run only
    Run(Run),
    /// Point a client at the proxy, or undo that; without a client, list them
    Setup(Setup),
    /// Share sessions between hosts on PostgreSQL: migrate, check, import and export
    #[command(subcommand)]
    Store(StoreCommand),
    /// Show what ctx saved: tokens, dollars, compactions, by day, project, client or model
    Stats(Stats),
    /// Serve a host in any language: JSON-RPC 2.0 on stdin and stdout, one object per line
    Rpc,
    /// Serve tools over MCP: recall, expand, remember, context_status, search_sessions
    Mcp(Mcp),
    /// Check folders, configuration, clients, proxy, engines and memory, and say what to do
    Doctor(Doctor),
    /// Show, check or describe the configuration
    #[command(subcommand)]
    Config(Config),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the status line of Claude Code, which it describes in JSON on standard input
    ///
    /// Size of the context and of the window, what the proxy saved in this conversation, share of the
    /// last request that was read from the cache; without what is unknown.
    Statusline,
    /// Answer a hook of a client: an event on stdin, text for the context on stdout
    #[command(hide = true)]
    Hook,
    /// Write the manual pages into a folder: `ctx.1`, and one page per command
    #[command(hide = true)]
    Man {
        /// The folder, which must exist
        folder: PathBuf,
    },
    /// Serve an engine library on stdin and stdout: how ctx runs untrusted libraries
    #[command(hide = true)]
    EngineHost {
        /// The library
        library: PathBuf,
    },
    /// Run a command for a tool, without a terminal, until the caller ends
    #[command(hide = true)]
    CommandHost(CommandHost),
}

/// An HTML page.
#[derive(Debug, Args)]
pub(crate) struct Page {
    /// Write a self-contained page with every figure
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Let the page replace a file that is not an earlier page
    #[arg(long, requires = "html")]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// Transcripts (pi, Claude Code, Codex, Gemini CLI, PonyBunny, OpenAI or Anthropic), folders of them,
    /// ids, or - for stdin [default: the newest session of the current folder]
    #[arg(value_name = "SESSION")]
    pub(crate) sessions: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) fit: Fit,
    #[command(flatten)]
    pub(crate) summaries: Summaries,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) page: Page,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Eval {
    #[command(subcommand)]
    pub(crate) command: Option<EvalCommand>,
    /// Transcripts, folders of them, ids, or - for one from stdin [default: the newest session of the
    /// current folder]
    #[arg(value_name = "SESSION")]
    pub(crate) sessions: Vec<PathBuf>,
    /// The model's window in tokens; 32k and 1M are understood [default: the model's]
    #[arg(long, short, value_name = "N")]
    pub(crate) window: Option<String>,
    /// The model, for its window and prices [default: the one in the transcript]
    #[arg(long, short, value_name = "NAME", value_parser = names::models(), hide_possible_values = true)]
    pub(crate) model: Option<String>,
    /// Only these profiles of ctx [default: all]
    #[arg(long = "profile", short, value_name = "P", value_delimiter = ',', value_parser = names::profiles())]
    pub(crate) profiles: Vec<Profile>,
    /// Include these engines, under the configured profile
    #[arg(long = "engine", short, value_name = "ID", value_delimiter = ',', value_parser = names::engines())]
    pub(crate) engines: Vec<String>,
    /// Only these presets of other agents [default: all]
    #[arg(long = "preset", value_name = "NAME", value_delimiter = ',', value_parser = names::presets())]
    pub(crate) presets: Vec<String>,
    /// Include each profile with long-term memory and its block before the newest message
    #[arg(long)]
    pub(crate) memory: bool,
    /// How all tokens are counted
    #[arg(long, short, value_name = "C", default_value = "chars4", value_parser = names::counters())]
    pub(crate) counter: CounterKind,
    /// Compact each session once, to this share of its tokens, between 0.05 and 0.9
    #[arg(long, value_name = "SHARE", default_value_t = ctx_eval::eval::COMPACT_TO)]
    pub(crate) compact_to: f64,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) page: Page,
}

#[derive(Debug, Args)]
pub(crate) struct Status {
    /// Transcripts, folders of them, ids, or - for stdin [default: the newest session of the current
    /// folder]
    #[arg(value_name = "SESSION")]
    pub(crate) sessions: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) fit: Fit,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Assemble {
    /// The transcript, its id or a prefix of that, or - for stdin
    pub(crate) session: PathBuf,
    #[command(flatten)]
    pub(crate) fit: Fit,
    #[command(flatten)]
    pub(crate) summaries: Summaries,
    /// The entry after which the request is made [default: the session's leaf]
    #[arg(long, value_name = "ENTRY")]
    pub(crate) at: Option<String>,
    /// The format of the messages
    #[arg(long, value_name = "DIALECT", default_value = "pi")]
    pub(crate) to: Shape,
    /// Include every message of the branch, as if the agent had never compacted
    #[arg(long)]
    pub(crate) ignore_compactions: bool,
    /// Store the projections of this request, so that later requests repeat them
    #[arg(long)]
    pub(crate) record: bool,
    /// Print JSON: `messages` and `manifest`
    #[arg(long)]
    pub(crate) json: bool,
}

/// The format of the messages of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shape {
    Pi,
    Openai,
    Anthropic,
}

#[derive(Debug, Args)]
pub(crate) struct Compactions {
    /// The transcript, its id or a prefix of that, or - for stdin
    #[arg(required_unless_present = "proxy")]
    pub(crate) session: Option<PathBuf>,
    /// Those that clients asked for through `ctx serve`, and whose messages it saved
    #[arg(long, conflicts_with = "session")]
    pub(crate) proxy: bool,
    /// Print JSON: an array, oldest first
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// The transcript, its id or a prefix of that, or - for stdin
    pub(crate) session: PathBuf,
    /// The compaction, as `ctx compactions` lists it [default: the newest in force]
    pub(crate) compaction: Option<String>,
    /// Only lost facts
    #[arg(long)]
    pub(crate) lost: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Expand {
    /// The transcript, its id or a prefix of that, or - for stdin
    #[arg(required_unless_present = "proxy")]
    pub(crate) session: Option<PathBuf>,
    /// The entry as cited, with or without `[e:`; or a compaction, for all messages it replaced
    #[arg(required_unless_present = "proxy")]
    pub(crate) entries: Vec<String>,
    /// Instead the messages of a compaction that `ctx compactions --proxy` lists, by its id or a
    /// prefix of that, or by the content of the item that the client got
    #[arg(long, value_name = "COMPACTION", num_args = 1.., conflicts_with = "session")]
    pub(crate) proxy: Vec<String>,
    /// Print JSON: an array of messages in pi's format
    #[arg(long)]
    pub(crate) json: bool,
}

/// The exit code is 1 if nothing in the original messages supports the text.
#[derive(Debug, Args)]
#[command(allow_missing_positional = true)]
pub(crate) struct Why {
    /// The transcript, its id or a prefix of that, or - for stdin [default: the newest session of the
    /// current folder]
    #[arg(allow_hyphen_values = true)]
    pub(crate) session: Option<PathBuf>,
    /// A line of a summary, whole or in part; the words of a fact; or the id of a fact of memory
    #[arg(allow_hyphen_values = true)]
    pub(crate) text: String,
    #[command(flatten)]
    pub(crate) of: InMemory,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Sessions {
    #[command(subcommand)]
    pub(crate) command: Option<SessionsCommand>,
    /// Only sessions of claude-code, codex, pi, openclaw, gemini-cli, opencode or ctx; or of this
    /// agent of ctx
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Only sessions of this folder and its subfolders [without DIR: of the current folder]
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".")]
    pub(crate) project: Option<PathBuf>,
    /// At most this many
    #[arg(long, short = 'n', value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Print the paths of the transcripts instead of the ids
    #[arg(long, conflicts_with = "json")]
    pub(crate) paths: bool,
    /// Print JSON: an array of objects, each with `path`, `agent`, `sessionId` and `project`
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// Archive sessions that are old or too many, and remove archived transcripts, as configured in
    /// session.maintenance
    Maintain(Maintain),
    /// Continue a session of ctx after another entry, or list where its branches end
    Branch(BranchArgs),
}

/// Messages that are only on the abandoned branch are summarised after the entry; nothing is
/// removed from the file.
#[derive(Debug, Args)]
pub(crate) struct BranchArgs {
    /// The session: its key, its id or a prefix of that, or its file
    pub(crate) session: PathBuf,
    /// The entry to continue after: its id or a prefix of that [default: list the ends of branches]
    pub(crate) entry: Option<String>,
    #[command(flatten)]
    pub(crate) fit: Fit,
    #[command(flatten)]
    pub(crate) summaries: Summaries,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Open sessions are kept. A removed transcript is renamed (`<file>.deleted.<time>`), and its
/// messages are archived in memory first, if memory is enabled.
#[derive(Debug, Args)]
pub(crate) struct Maintain {
    /// Only this agent's sessions
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// Show what would be done, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON: an array of what was done, one object per agent
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Convert {
    /// The transcript, its id or a prefix of that, or - for stdin
    pub(crate) session: PathBuf,
    /// The format to write; `ctx` is a session that ctx can append to
    #[arg(long, value_name = "FORMAT", value_parser = names::formats())]
    pub(crate) to: String,
    /// With --to ponybunny: write what remains after compactions, with their summary as
    /// compactedHistory, instead of all messages
    #[arg(long)]
    pub(crate) compacted: bool,
    /// Where to write [default: stdout]; an existing file is replaced only with --force
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace the output file
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The transcript, its id or a prefix of that, or - for stdin
    pub(crate) session: PathBuf,
    /// Write a repaired copy beside the transcript; the original is not changed
    #[arg(long)]
    pub(crate) repair: bool,
    /// Where to write the repaired copy [default: SESSION.repaired.jsonl]
    #[arg(long, short, value_name = "FILE", requires = "repair")]
    pub(crate) output: Option<PathBuf>,
    /// Replace an existing copy
    #[arg(long)]
    pub(crate) force: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

//! The arguments of `ctx chat`.

use clap::{Args, ValueEnum};
use ctx_config::Profile;

use super::names;

/// Talks with a model in a persistent session: each message and answer is on disk, old history is
/// summarised when the window fills, and relevant messages are recalled. At a terminal it is a
/// conversation: /help lists its commands, Ctrl-C stops an answer, Ctrl-D ends it. The tools work
/// in the current folder.
#[derive(Debug, Args)]
pub(crate) struct Chat {
    /// The session: its key, or a name of your choice; created if it does not exist
    #[arg(long, short, value_name = "KEY", default_value = "main")]
    pub(crate) session: String,
    /// The model, as provider/model; repeat it to add fallbacks [default: agents.defaults.model,
    /// else a model whose API key is set]
    #[arg(long = "model", short, value_name = "PROVIDER/NAME", conflicts_with = "demo")]
    pub(crate) models: Vec<String>,
    /// The model's window in tokens; 32k and 1M are understood [default: the model's]
    #[arg(long, short, value_name = "N")]
    pub(crate) window: Option<String>,
    /// The engine [default: the configured one, else legacy]
    #[arg(long, short, value_name = "ID", value_parser = names::engines())]
    pub(crate) engine: Option<String>,
    /// The profile that sets the defaults [default: from the config]
    #[arg(long, value_name = "P", value_parser = names::profiles())]
    pub(crate) profile: Option<Profile>,
    /// Send this message, print only the answer, and exit; - reads it from standard input
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) prompt: Option<String>,
    /// The tools the model may use; at a terminal it asks before it writes or runs anything, with
    /// --prompt the named tools run without asking [default: all; with --prompt, read]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) tools: Option<Vec<Tool>>,
    /// Show tool calls and compactions
    #[arg(long)]
    pub(crate) verbose: bool,
    /// Talk to a built-in model that follows rules and needs no key and no server; it has its own
    /// configuration, which --config overrides
    #[arg(long)]
    pub(crate) demo: bool,
    /// With --prompt: print JSON
    #[arg(long, requires = "prompt")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CommandHost {
    /// The command for bash
    #[arg(allow_hyphen_values = true)]
    pub(crate) command: String,
}

/// A tool of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ValueEnum)]
pub(crate) enum Tool {
    Read,
    Write,
    Bash,
    /// No tools
    None,
}

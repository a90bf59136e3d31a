//! What can be asked of `ctx chat`.

use clap::{Args, ValueEnum};
use ctx_core::Profile;

use super::names;

/// Talks with a model in a session that lasts: each message and answer is on disk, old history becomes
/// a summary when the window fills, and what was said comes back when it is asked for. At a terminal it
/// is a conversation: /help lists its commands, Ctrl-C stops an answer, Ctrl-D ends it. The tools work
/// in the folder it is started in.
#[derive(Debug, Args)]
pub(crate) struct Chat {
    /// The session: its key, or a name for one of your own; begun where there is none
    #[arg(long, short, value_name = "KEY", default_value = "main")]
    pub(crate) session: String,
    /// The model, as provider/name; given again, one that answers when those before it cannot
    /// [default: agents.defaults.model, else one that there is a key for]
    #[arg(long = "model", short, value_name = "PROVIDER/NAME", conflicts_with = "demo")]
    pub(crate) models: Vec<String>,
    /// The model's window in tokens; 32k and 1M are understood [default: the model's]
    #[arg(long, short, value_name = "N")]
    pub(crate) window: Option<String>,
    /// The engine [default: the configured one, else legacy]
    #[arg(long, short, value_name = "ID", value_parser = names::engines())]
    pub(crate) engine: Option<String>,
    /// Whose defaults [default: from the config]
    #[arg(long, value_name = "P", value_parser = names::profiles())]
    pub(crate) profile: Option<Profile>,
    /// Say this, print the answer alone, and end; - reads it from standard input
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) prompt: Option<String>,
    /// The tools the model may use; at a terminal it asks before it writes or runs anything, with
    /// --prompt those that are named here are used without asking [default: all; with --prompt, read]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) tools: Option<Vec<Tool>>,
    /// Say what happens on the way: tool calls, compactions
    #[arg(long)]
    pub(crate) verbose: bool,
    /// Talk to a built-in model that follows rules: no key, no server; it has a configuration of its
    /// own, over which --config is laid
    #[arg(long)]
    pub(crate) demo: bool,
    /// With --prompt: print JSON
    #[arg(long, requires = "prompt")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CommandHost {
    /// What bash is to run
    #[arg(allow_hyphen_values = true)]
    pub(crate) command: String,
}

/// A tool of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ValueEnum)]
pub(crate) enum Tool {
    Read,
    Write,
    Bash,
    /// No tools at all
    None,
}

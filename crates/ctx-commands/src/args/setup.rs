//! The arguments of `ctx setup` and `ctx run`.

use std::ffi::OsString;

use clap::Args;
use ctx_clients::Client;

use super::Serve;

/// Points a client at `ctx serve`: writes its base URL into its configuration. Shows the change
/// first, keeps a copy of each file, and never touches a key. `--undo` restores the files byte for
/// byte. Without a client and --undo, lists the clients and where they send their requests.
#[derive(Debug, Args)]
pub(crate) struct Setup {
    /// claude, codex, gemini, opencode, qwen, pi, openclaw, aider, or sdk for programs on the SDKs
    /// of OpenAI and Anthropic
    pub(crate) client: Option<Client>,
    /// The proxy [default: the one that runs, else server.listen, else http://127.0.0.1:8787]
    #[arg(long, value_name = "URL", conflicts_with = "undo")]
    pub(crate) url: Option<String>,
    /// Set up the project in this folder, instead of all projects
    #[arg(long)]
    pub(crate) project: bool,
    /// Add `ctx mcp` to the client's MCP servers too
    #[arg(long, conflicts_with = "undo")]
    pub(crate) mcp: bool,
    /// Replace the address of another server
    #[arg(long, conflicts_with = "undo")]
    pub(crate) replace: bool,
    /// Restore the files as they were before; without a client, those of all clients
    #[arg(long)]
    pub(crate) undo: bool,
    /// With --undo: take back the settings even if the files were edited since; the edits stay
    #[arg(long, requires = "undo")]
    pub(crate) force: bool,
    /// Show the change, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Write without a question
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Print JSON; nothing is written without --yes
    #[arg(long)]
    pub(crate) json: bool,
}

/// Runs a client whose requests go through ctx; nothing is changed for other runs. If no `ctx
/// serve` of this home runs, the proxy runs inside this command and ends with the client. The exit
/// code is that of the client.
#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) proxy: RunProxy,
    /// The client and its arguments: ctx run -- codex exec "fix the test"
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    pub(crate) command: Vec<OsString>,
}

/// The flags of the proxy inside of `ctx run`.
#[derive(Debug, Args)]
pub(crate) struct RunProxy {
    /// Where requests are sent: URL for all, or openai=URL, anthropic=URL, gemini=URL; may be
    /// repeated [default: those that the client is configured for]
    #[arg(long = "upstream", short, value_name = "URL")]
    pub(crate) upstreams: Vec<String>,
    /// The models' window in tokens; 32k and 1M are understood [default: each model's own]
    #[arg(long, short, value_name = "N")]
    pub(crate) window: Option<String>,
}

impl RunProxy {
    /// Returns the flags of a server on a free port.
    pub(crate) fn serve(&self) -> Serve {
        Serve {
            listen: Some("127.0.0.1:0".to_owned()),
            upstreams: self.upstreams.clone(),
            window: self.window.clone(),
            ..Serve::default()
        }
    }
}

/// Checks what ctx needs and who uses it: folders, configuration, installed clients and how they
/// are set, the proxy (with requests of its own to a test provider), keys (never shown), engines,
/// memory. Each finding says what to do. Exit code 1 if something does not work.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Also send a request of one word to a cheap model of each provider that has its key in the
    /// environment, through the running proxy
    #[arg(long)]
    pub(crate) live: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

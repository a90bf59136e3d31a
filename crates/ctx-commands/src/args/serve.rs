//! The arguments of `ctx serve`.

use clap::Args;

use super::names;

/// Accepts requests of model clients (OpenAI chat completions and responses, Anthropic messages,
/// Gemini), fits their history into the window, and forwards them with their own API key. Set the
/// client's base URL to the printed one, or use `ctx setup` or `ctx run`. Ctrl-C finishes running
/// requests; a second one ends at once.
#[derive(Debug, Default, Args)]
pub(crate) struct Serve {
    /// The address to listen on; port 0 picks a free one [default: server.listen, else 127.0.0.1:8787]
    #[arg(long, short, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// Where requests are sent: URL for all, or openai=URL, anthropic=URL, gemini=URL,
    /// bedrock=URL; may be repeated [default: server.upstreams, else the public ones]
    #[arg(long = "upstream", short, value_name = "URL")]
    pub(crate) upstreams: Vec<String>,
    /// The models' window in tokens; 32k and 1M are understood [default: each model's own]
    #[arg(long, short, value_name = "N")]
    pub(crate) window: Option<String>,
    /// The engine [default: the configured one, else legacy]
    #[arg(long, short, value_name = "ID", value_parser = names::engines())]
    pub(crate) engine: Option<String>,
    /// The agent whose engine and memory are used [default: main]
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// The token required from other machines, and for all changes; other users of this machine can
    /// see flags, so prefer $CTX_SERVER_TOKEN
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// The maximum size of a request body, with a unit: 64M [default: server.maxBodyBytes, else 64 MiB]
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_body: Option<String>,
    /// Seconds to wait for running answers at shutdown [default: server.graceSeconds, else 30]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) grace: Option<u32>,
    /// Serve in the background, and return as soon as the server listens; if one of this home runs
    /// already, say where. Its log is proxy/serve.log in $CTX_HOME
    #[arg(long, conflicts_with = "stop")]
    pub(crate) background: bool,
    /// With --background: take over from the server that runs. Its running answers are finished first
    #[arg(long, requires = "background")]
    pub(crate) replace: bool,
    /// End the server of this home; running answers are finished first
    #[arg(long)]
    pub(crate) stop: bool,
    /// Show which server of this home runs, and where it sends requests; exit code 1 if none does
    #[arg(long, conflicts_with_all = ["background", "stop"])]
    pub(crate) status: bool,
    /// Leave the terminal.
    #[arg(long, hide = true)]
    pub(crate) detached: bool,
    /// Wait until the server of this home has ended.
    #[arg(long, hide = true)]
    pub(crate) takes_over: bool,
    /// Print JSON: one object, as soon as the server listens
    #[arg(long)]
    pub(crate) json: bool,
}

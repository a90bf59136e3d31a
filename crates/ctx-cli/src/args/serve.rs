//! What can be asked of `ctx serve`.

use clap::Args;

use super::names;

/// Listens for the requests of model clients (OpenAI chat completions and responses, Anthropic
/// messages, Gemini), makes their history fit, and sends them on with the key they came with. Set the
/// client's base URL to the one that is printed. Ctrl-C finishes what runs; a second one ends at once.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Where to listen; port 0 is any that is free [default: server.listen, else 127.0.0.1:8787]
    #[arg(long, short, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// Where requests go: URL for all, or openai=URL, anthropic=URL, gemini=URL; given again, another
    /// [default: server.upstreams, else the public ones]
    #[arg(long = "upstream", short, value_name = "URL")]
    pub(crate) upstreams: Vec<String>,
    /// The models' window in tokens; 32k and 1M are understood [default: each model's own]
    #[arg(long, short, value_name = "N")]
    pub(crate) window: Option<String>,
    /// The engine [default: the configured one, else legacy]
    #[arg(long, short, value_name = "ID", value_parser = names::engines())]
    pub(crate) engine: Option<String>,
    /// The agent whose engine and memory it is [default: main]
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// What others than this machine, and everything that writes, have to show; other users of this
    /// machine can see flags, so rather set $CTX_SERVER_TOKEN
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// The largest body of a request, with a unit: 64M [default: server.maxBodyBytes, else 64 MiB]
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_body: Option<String>,
    /// How long running answers are waited for at the end [default: server.graceSeconds, else 30]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) grace: Option<u32>,
    /// Print JSON: an object when it listens
    #[arg(long)]
    pub(crate) json: bool,
}

//! The arguments of `ctx inspect`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::Fit;

/// Serves a page that shows what each request of a session would contain, what was dropped, by
/// which layer and why, the compactions with what they kept, and what memory finds. A session is
/// replayed when it is opened, as `ctx replay` does; no model is called. The page is available on
/// this machine only, and follows an active session. Ctrl-C ends it.
#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// A transcript, a session's key, id or a prefix of that, or folders and several transcripts,
    /// to list only these [default: the sessions of all agents]
    #[arg(value_name = "SESSION")]
    pub(crate) sessions: Vec<PathBuf>,
    /// The address to listen on, on this machine
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8789")]
    pub(crate) listen: SocketAddr,
    /// The port to listen on; 0 picks a free one [default: that of --listen]
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// Open the page in the browser: $BROWSER, else the system's
    #[arg(long)]
    pub(crate) open: bool,
    /// A token that allows undoing compactions on the page; without one the page is read-only
    /// [default: $CTX_SERVER_TOKEN]
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    #[command(flatten)]
    pub(crate) fit: Fit,
    /// Print the address as JSON: `url`, `session`
    #[arg(long)]
    pub(crate) json: bool,
}

//! What can be asked of `ctx inspect`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::Fit;

/// Serves a page that shows what each request of a session would carry, what was left out of it, by
/// which layer and why, the compactions with what they kept, and what memory finds. A session is
/// replayed when it is opened, as `ctx replay` does; no model is asked. The page is for this machine
/// alone, and follows a session that goes on. Ctrl-C ends it.
#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// A transcript, a session's key, id or a beginning of that, or folders and several transcripts, which
    /// alone are listed then [default: the sessions of all agents]
    #[arg(value_name = "SESSION")]
    pub(crate) sessions: Vec<PathBuf>,
    /// Where to listen, on this machine
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8789")]
    pub(crate) listen: SocketAddr,
    /// The port to listen on; 0 takes one that is free [default: that of --listen]
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// Open the page in the browser: $BROWSER, else the one of the system
    #[arg(long)]
    pub(crate) open: bool,
    /// Lets the page take compactions back, for who enters this token there; without one it only
    /// reads [default: $CTX_SERVER_TOKEN]
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    #[command(flatten)]
    pub(crate) fit: Fit,
    /// Print the address as JSON: `url`, `session`
    #[arg(long)]
    pub(crate) json: bool,
}

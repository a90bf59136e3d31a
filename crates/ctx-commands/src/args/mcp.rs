//! The arguments of `ctx mcp`.

use std::net::SocketAddr;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Mcp {
    /// Serve Streamable HTTP on this address, such as 127.0.0.1:8788; port 0 picks a free one
    /// [default: serve standard input and output]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<SocketAddr>,
    /// The agent whose sessions and memory are served
    #[arg(long, value_name = "ID", default_value = "main")]
    pub(crate) agent: String,
    /// The session of calls that specify none: its key, its id, or the path of its transcript
    #[arg(long, value_name = "KEY")]
    pub(crate) session: Option<String>,
    /// With --http: the token without which clients cannot write; required if other machines can
    /// reach the address [default: $CTX_SERVER_TOKEN]
    #[arg(long, value_name = "TOKEN", requires = "http")]
    pub(crate) token: Option<String>,
    /// Offer no tools that write
    #[arg(long)]
    pub(crate) read_only: bool,
}

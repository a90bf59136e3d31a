//! What can be asked of `ctx mcp`.

use std::net::SocketAddr;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Mcp {
    /// Serve streamable HTTP at this address, such as 127.0.0.1:8788; port 0 takes any that is free
    /// [default: serve standard input and output]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<SocketAddr>,
    /// Whose sessions and whose memory
    #[arg(long, value_name = "ID", default_value = "main")]
    pub(crate) agent: String,
    /// The session that calls mean which name none: its key, its id, or the path of its transcript
    #[arg(long, value_name = "KEY")]
    pub(crate) session: Option<String>,
    /// With --http: what clients show to write, and to reach an address that others reach too
    /// [default: $CTX_SERVER_TOKEN]
    #[arg(long, value_name = "TOKEN", requires = "http")]
    pub(crate) token: Option<String>,
    /// Offer no tool that writes
    #[arg(long)]
    pub(crate) read_only: bool,
}

//! Tools over MCP: lookups in an agent's sessions and memory for a client's model.
//!
//! ```text
//! client --> stdio | http --> Server --> a blocking thread: tool or resource --> files of the home
//! ```
//!
//! Every call opens the files it needs and closes them: other processes may write the same sessions
//! and memory, and the next call sees their changes. A server that archives the sessions of other
//! agents keeps one memory open, and each call reloads changes made by others. The server keeps no
//! state per client, so an idle client costs nothing.
//!
//! All client input is untrusted. A session is specified by its key or its id, never by a path. The
//! server reads only the path that the user gave with `--session`, and the folders where agents
//! store their sessions.

#![forbid(unsafe_code)]

mod http;
mod output;
mod resources;
mod server;
mod session;
mod status;
mod stdio;
mod tools;
mod uri;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use ctx_runtime::lookup::{Archiver, OtherSessions};
use ctx_session::key::FileId;

use ctx_server::Host;

pub use http::{PATH, routes};
pub use server::Server;
pub use status::status;
pub use stdio::serve_stdio;

/// The environment of the tools.
#[derive(Clone)]
pub struct Setup {
    /// The configuration in force, and the home.
    pub host: Host,
    /// The agent whose sessions and memory are used.
    pub agent: FileId,
    /// The default session of calls.
    pub session: Option<SessionRef>,
    /// Which clients may use tools that write.
    pub writes: Writes,
    /// The sessions of other agents on this machine, for a server that serves only its own user.
    pub others: Option<OtherAgents>,
}

/// The sessions of other agents.
#[derive(Clone)]
pub struct OtherAgents {
    /// Their sessions. The newest one of the folder is the default of calls.
    pub sessions: Arc<OtherSessions>,
    /// Archives them; `None` if they are not archived.
    pub archiver: Option<Arc<Archiver>>,
}

/// Which clients may use tools that write. Other clients do not see them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// Every client.
    All,
    /// Clients over HTTP with the server's token.
    WithToken,
    /// No client.
    Nobody,
}

/// A session specified by the user who starts the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionRef {
    /// By its key or its id.
    Named(String),
    /// By the path of its transcript, which may belong to another program.
    File(PathBuf),
}

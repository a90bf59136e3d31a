//! Tools over MCP: what a client's model may look up in an agent's sessions and in its memory.
//!
//! ```text
//! client --> stdio | http --> Server --> a thread of its own: tool or resource --> files of the home
//! ```
//!
//! Every call opens what it needs and lets go of it: another process may write the same sessions and
//! the same memory meanwhile, and what it wrote is found by the next call. A server that archives the
//! sessions of other agents has one memory open, and each call takes over what others wrote there. The
//! server keeps nothing of a client, so that no client costs anything between its calls.
//!
//! All that a client sends is untrusted. A session is named by its key or its id, never by a path; the
//! only paths that are read are the one that the user gave with `--session` and those where agents keep
//! their sessions.

mod answer;
mod http;
mod resources;
mod server;
mod session;
mod stdio;
mod tools;
mod uri;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use ctx_runtime::Archiver;
use ctx_session::discover::AgentHomes;
use ctx_session::key::FileId;

use crate::Host;

pub use http::{PATH, routes};
pub use server::Server;
pub use stdio::{MAX_MESSAGE_BYTES, serve_stdio};

/// What the tools work on.
#[derive(Clone)]
pub struct Setup {
    /// The configuration in force, and where everything is.
    pub host: Host,
    /// Whose sessions and whose memory.
    pub agent: FileId,
    /// The session that is meant where a call names none.
    pub session: Option<Meant>,
    /// Who may use tools that write.
    pub writes: Writes,
    /// The sessions of other agents on this machine, for a server of its user alone.
    pub others: Option<Others>,
}

/// The sessions of other agents.
#[derive(Clone)]
pub struct Others {
    /// Where they are.
    pub homes: AgentHomes,
    /// The folder whose newest session is meant where a call names none.
    pub folder: PathBuf,
    /// What archives them; none where they are not archived.
    pub archiver: Option<Arc<Archiver>>,
}

/// Who may use tools that write. Others do not see them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// Every client.
    All,
    /// Over HTTP, who shows the server's token.
    WithToken,
    /// Nobody.
    Nobody,
}

/// A session, as the user who starts the server names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meant {
    /// By its key or its id.
    Named(String),
    /// By the path of its transcript, which may be one of another program.
    File(PathBuf),
}

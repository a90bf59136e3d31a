//! A session whose history is owned by its host.
//!
//! The host sends the conversation, incrementally or as a whole, and requests the messages of each
//! model request. The session keeps the engine's state: the view, the projections, the compaction
//! in force. If the view is lost (an engine failed midway) or outdated (the host changed its
//! history), it is rebuilt from these.

mod history;
mod open;
mod session;
mod turn;
mod unit;
mod view;

use ctx_config::Config;
use ctx_session::Home;

pub(crate) use history::{History, HistoryItem, SyncResult};
pub(crate) use open::{RecordedSession, SessionOptions, SummarySource, open};
pub(crate) use session::{HostedSession, SentMessage};
pub(crate) use turn::{AssembledRequest, OutgoingMessage};
pub(crate) use unit::{Retain, Unit, UnitDigest, UnitSource, digest};
pub(crate) use view::InForce;

/// The environment shared by all sessions.
#[derive(Clone, Debug)]
pub struct Host {
    /// The configuration in force.
    pub config: Config,
    /// The folder for files that leave the context.
    pub home: Home,
}

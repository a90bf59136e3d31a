//! A session whose history is owned by its host.
//!
//! The host sends the conversation, incrementally or as a whole, and requests the messages of each
//! model request. The session keeps the engine's state: the view, the projections, the compaction
//! in force. If the view is lost (an engine failed midway) or outdated (the host changed its
//! history), it is rebuilt from these.

#![forbid(unsafe_code)]

mod history;
mod open;
mod readable;
mod session;
mod turn;
mod unit;
mod view;

use ctx_config::Config;
use ctx_session::Home;

pub use history::{History, HistoryItem, SyncResult, answers_unknown_calls, check_id_count};
pub use open::{RecordedSession, SessionOptions, SummarySource, open};
pub use readable::{Expanded, ReadableMessages, short};
pub use session::{HostedSession, SentMessage};
pub use turn::{AssembledRequest, OutgoingMessage};
pub use unit::{Retain, Unit, UnitDigest, UnitSource, digest};
pub use view::InForce;

/// The environment shared by all sessions.
#[derive(Clone, Debug)]
pub struct Host {
    /// The configuration in force.
    pub config: Config,
    /// The folder for files that leave the context.
    pub home: Home,
}

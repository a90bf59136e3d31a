//! A session whose history its host owns.
//!
//! The host tells the conversation, as it grows or as it stands, and asks for the messages of each
//! request. What the engine needs is kept here: the view, the forms that were sent, the compaction
//! in force. Where the view is lost (an engine failed in the middle) or no longer fits (the host
//! changed its history), it is made anew from these.

mod history;
mod open;
mod session;
mod told;
mod turn;
mod view;

use ctx_engine_registry::Config;
use ctx_session::paths::Home;

pub(crate) use history::{History, Item, Synced};
pub(crate) use open::{Opening, Recorded, Summaries, open};
pub(crate) use session::{SentMessage, Session};
pub(crate) use told::{Keeps, Mark, Told, Unit, mark};
pub(crate) use turn::{Compacting, Made};
pub(crate) use view::InForce;

/// What all sessions are opened with.
#[derive(Clone, Debug)]
pub struct Host {
    /// The configuration in force.
    pub config: Config,
    /// Where files go that leave the context.
    pub home: Home,
}

//! What a host passes into a turn, and what it receives.

mod layer_actions;
mod listener;
mod outcome;

pub use layer_actions::LayerAction;
pub use listener::{Event, Listener, NoListener, Notice, NoticeKind};
pub use outcome::{Input, TurnOutcome, WindowFill};

pub(crate) use layer_actions::{LayerCounts, layer};

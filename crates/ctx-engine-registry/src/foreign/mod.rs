//! Foreign engines: telling them of a session, and keeping their answers from hurting it.
//!
//! [`Supervised`] is the [`ContextEngine`](ctx_core::ContextEngine) that hosts see. It starts a
//! [`Foreign`] over a [`Channel`] and tells it what is new in a
//! [`ContextView`](ctx_core::ContextView) ([`Told`]). What that answers is [checked](check()) against
//! the view before anything of it is carried out, and then [applied](apply()) in the engine's name.
//! An answer that would break the session is a [`Rejection`], and one that does not come a
//! [`Fault`](crate::carrier::Fault); the default engine then serves the turn from a view that is as
//! it was.

mod apply;
mod build;
mod channel;
mod check;
mod compaction;
mod engine;
mod form;
mod lease;
mod live;
mod record;
mod rejection;
mod serving;
mod sessions;
mod supervised;
mod tell;
mod trouble;

pub use apply::apply;
pub use channel::{Channel, Open};
pub use check::{Checked, Ground, Remark, check};
pub use compaction::Outcome;
pub use engine::Foreign;
pub use rejection::Rejection;
pub use supervised::{Supervised, Terms};
pub use tell::{Telling, Told};
pub use trouble::Trouble;

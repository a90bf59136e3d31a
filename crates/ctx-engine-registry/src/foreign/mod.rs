//! Foreign engines: what their answers are allowed to do.
//!
//! An engine is told what is new in a [`ContextView`](ctx_core::ContextView) ([`Told`]). What it
//! answers is [checked](check()) against the view before anything of it is carried out, and then
//! [applied](apply()) in the engine's name. An answer that would break the session is a
//! [`Rejection`], and the view stays as it was.

mod apply;
mod check;
mod form;
mod rejection;
mod tell;

pub use apply::apply;
pub use check::{Checked, Ground, Remark, check};
pub use rejection::Rejection;
pub use tell::{Telling, Told};

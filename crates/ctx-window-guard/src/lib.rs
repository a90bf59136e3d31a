//! Layer 1: is this model's window big enough?
//!
//! A model whose window is too small fails late and expensively: it takes the request, answers with
//! an overflow error, and compaction cannot help it. The guard settles the question before any
//! work: [`resolve`] finds out how large the window is and who says so, [`Window::check`] refuses
//! one that is too small with a [`FailoverError`], on which the outer loop takes another model.
//! [`WindowGuard`] does the same as a layer.

#![forbid(unsafe_code)]

mod config;
mod failover;
mod layer;
mod source;
mod window;

pub use config::{
    CONTEXT_WINDOW_HARD_MIN_TOKENS, CONTEXT_WINDOW_WARN_BELOW_TOKENS, Config, Order, Rule,
};
pub use failover::FailoverError;
pub use layer::WindowGuard;
pub use source::{Candidates, ContextWindowSource};
pub use window::{Window, resolve};

#[cfg(feature = "register")]
mod register;

//! Layer 1: checks that the model's context window is large enough.
//!
//! A model whose window is too small fails late and expensively: it accepts the request, answers
//! with an overflow error, and compaction cannot help it. The guard checks before any work.
//! [`resolve`] determines the size of the window and its source; [`Window::check`] rejects a window
//! that is too small with a [`FailoverError`]; the outer loop then uses another model.
//! [`WindowGuard`] does the same as a layer.

#![forbid(unsafe_code)]

mod config;
mod failover;
mod layer;
mod source;
mod window;

pub use config::{Config, MinimumRule, SourceOrder};
pub use failover::FailoverError;
pub use layer::WindowGuard;
pub use source::{ContextWindowSource, WindowSizes};
pub use window::{Window, resolve};

#[cfg(feature = "register")]
mod register;

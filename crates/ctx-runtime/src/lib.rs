//! The outer loop: a host hands over a user's message and gets an answer back.
//!
//! Lanes, overflow recovery, failover between models, the memory flush and the life of a session
//! belong here and are not here yet. A host that runs its own loop uses `ctx-engine-registry` and
//! the layers it links; the pieces it needs from [`ctx_core`] are [`ctx_core::ContextView`],
//! [`ctx_core::ContextEngine`] and [`ctx_core::ToolHooks`].

//!
//! What any loop begins with is here: [`Wanted`] says what a session is to be run with, and becomes
//! a [`Resolved`] window, counter and engine, from the configuration and the catalogue. Over that
//! engine [`EngineWatch`] remembers for other programs how it fared.

#![forbid(unsafe_code)]

mod embedder;
pub mod forget;
mod memory;
mod setup;
mod sharing;
mod watch;
mod workspace;
mod writers;

pub use embedder::{http_embedder, vector_model};
pub use memory::{AgentMemory, MemoryAt, memory_session};
pub use setup::{Asked, Resolved, Wanted};
pub use sharing::Memories;
pub use watch::EngineWatch;
pub use workspace::{workspace_model, workspace_search};
pub use writers::{Writers, configured_writer, summary_models};

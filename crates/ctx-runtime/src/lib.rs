//! The outer loop: a host hands over a user's message and gets an answer back.
//!
//! [`Runtime`] does it: it holds the sessions of a home, runs turns in their [lanes], assembles each
//! request through the engine of the slot, asks the models of a chain, runs tools, recovers from
//! requests that are too long, compacts, and keeps everything in the session's file.
//!
//! A host that runs its own loop begins with [`Wanted`], which says what a session is to be run with
//! and becomes a [`Resolved`] window, counter and engine, from the configuration and the catalogue.
//! Over that engine [`EngineWatch`] remembers for other programs how it fared.

#![forbid(unsafe_code)]

mod archiver;
mod chain;
pub mod cited;
mod embedder;
pub mod forget;
pub mod lanes;
pub mod lifecycle;
pub mod lookup;
mod memory;
mod remembering;
mod runtime;
mod session;
mod setup;
mod sharing;
mod stores;
mod subagents;
mod turn;
mod watch;
pub mod words;
mod workspace;
mod writers;

pub use archiver::{ArchiveProgress, Archiver};
pub use chain::Chain;
pub use embedder::{http_embedder, vector_model};
pub use memory::{AgentMemory, MemoryAt, memory_session};
pub use remembering::Remembering;
pub use runtime::{
    Builder, Clock, Deaf, Event, Fill, Input, LONGEST_WAIT, LayerAction, Lifecycle, Listener,
    Lived, Notice, NoticeKind, OneSession, Runtime, SILENCE, TurnOutcome, WorkspaceAccess,
};
pub use setup::{Asked, Resolved, Wanted, WindowProof};
pub use sharing::Memories;
pub use stores::Stores;
pub use subagents::{ContextMode, SpawnRequest, SubagentConfig, SubagentOutcome};
pub use turn::COMMANDS;
pub use watch::{EngineWatch, engine_trouble};
pub use workspace::{workspace_model, workspace_search};
pub use writers::{Writers, configured_writer, summary_models};

//! The outer loop: a host passes in a user's message and gets an answer back.
//!
//! [`Runtime`] manages the sessions of a home and runs turns in their [lanes]. It assembles each
//! request through the selected engine, calls the models of a chain, runs tools, recovers from
//! context overflows, compacts, and stores everything in the session's file.
//!
//! A host with its own loop starts with [`SessionSpec`], which describes how a session is run. The
//! configuration and the catalogue turn it into a [`Resolved`] window, counter and engine.
//! [`EngineHealthRecorder`] records the health of that engine for other programs.

#![forbid(unsafe_code)]

mod engine_health;
mod files;
pub mod forget;
mod host;
pub mod lanes;
pub mod lifecycle;
pub mod lookup;
pub mod maintenance;
mod memory;
mod models;
mod runtime;
mod session;
mod spec;
mod stores;
mod sync;
mod telemetry;
mod turn;

pub use ctx_workspace::WorkspaceAccess;
pub use engine_health::{EngineHealthRecorder, engine_trouble};
pub use host::{
    Event, Input, LayerAction, Listener, NoListener, Notice, NoticeKind, TurnOutcome, WindowFill,
};
pub use memory::{
    AgentMemory, MemoryLocation, MemoryWorker, SharedMemories, memory_session, workspace_model,
};
pub use models::{
    ModelChain, SummaryModelChain, configured_summary_model, summary_models, vector_model,
};
pub use runtime::{Builder, ContextMode, Runtime, SpawnRequest, SubagentOutcome};
pub use spec::{ModelSource, Resolved, SessionSpec, WindowProof};
pub use stores::Stores;
pub use telemetry::trace_compaction;
pub use turn::{BranchMove, COMMANDS, branch_ends};

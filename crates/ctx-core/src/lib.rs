//! The shared types of all ctx crates.
//!
//! Data flows one way through this crate: entries of a transcript are appended to a
//! [`ContextView`], layers edit the view, and [`ContextView::finish`] enforces the invariants and
//! returns the messages of one model request together with the [`Manifest`] of all edits.
//!
//! This crate has no I/O, clock, tasks or randomness: time and ids are arguments.

#![forbid(unsafe_code)]

pub mod amount;
mod chat;
mod compaction;
mod count;
mod debug;
mod engine;
mod entry;
mod error;
mod health;
mod json;
mod layer;
mod ledger;
mod manifest;
mod message;
pub mod printable;
mod projection;
mod services;
pub mod text;
mod tokens;
mod view;
mod warnings;

pub use chat::{
    ChatModel, ChatRequest, ChatStop, Delta, Deltas, ModelCard, NoTools, Reply, ToolOutput,
    ToolSpec, Toolbox, model_fn,
};
pub use compaction::{
    CompactResult, Compacted, CompactionTrigger, IdentifierPolicy, SummaryInstructions,
};
pub use count::{Counter, CounterKind, UndecodedCount};
pub use engine::{
    AssembleRequest, Assembled, BootstrapRequest, BootstrapResult, ContextEngine, EngineInfo,
    IngestRequest, IngestResult, SubagentEnd, SubagentSpawn,
};
pub use entry::{Entry, EntryId, LoadMessage, MessageOutline};
pub use error::{Error, ErrorKind, Result};
pub use health::{EngineFailure, EngineHealth, EngineNote, EngineState, LeaseState};
pub use json::RawJson;
pub use layer::{CompactRequest, Layer, Pending, PendingCompaction, Prepared, TurnContext};
pub use ledger::{
    Calibration, KEEP_RECENT_MAX_SHARE, MIN_MESSAGE_TOKENS, RESERVE_MAX_SHARE, TokenLedger,
};
pub use manifest::{Action, Component, Edit, Manifest, ManifestEntry, NodeState};
pub use message::{
    BashRun, Block, CallId, CallSpelling, Image, Message, Meta, Role, Timestamp, ToolCall,
    ToolResult, Usage,
};
pub use projection::{ContentHash, Projected, Projection, ProjectionKey};
pub use services::{
    BlobStore, Embedder, IdSource, MemoryStore, Passage, RecallRequest, RecalledFact, Recollection,
    SequentialIds, Services, Snippet, SnippetSource, Store, Summarizer, Summary, SummaryModels,
    SummaryRequest, Timer, WorkspaceAnswer, WorkspaceSearch,
};
pub use tokens::{Chars, IMAGE_TOKENS, Tokens};
pub use view::{
    CONTEXT_LIMIT_TRUNCATION_NOTICE, ContextView, Finished, MIDDLE_OMITTED_NOTICE,
    MISSING_RESULT_NOTICE, Node, NodeHandle, ORPHANED_RESULT, ViewId, Views, check_pairs,
    common_cap, shortened,
};
pub use warnings::Warnings;

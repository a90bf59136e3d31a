//! The words every ctx crate speaks.
//!
//! One way leads through this crate: entries of a transcript are appended to a [`ContextView`],
//! layers edit the view, and [`ContextView::finish`] keeps the rules that may never break and hands
//! out the messages of one model request together with the [`Manifest`] that says what was done.
//!
//! There is no I/O here, no clock, no task and no randomness: time and ids come in as arguments.

#![forbid(unsafe_code)]

mod bash_run;
mod block_json;
mod chat;
mod count;
mod engine;
mod entry;
mod error;
mod health;
mod hooks;
mod json;
mod layer;
mod ledger;
mod manifest;
mod memory;
mod message;
mod profile;
mod projection;
mod services;
mod summary;
pub mod text;
mod tokens;
mod tool;
mod view;
mod workspace;

pub use bash_run::BashRun;
pub use chat::{
    ChatModel, ChatRequest, ChatStop, Delta, Deltas, ModelCard, ModelFn, NoTools, Reply,
    ToolOutput, ToolSpec, Toolbox, model_fn,
};
pub use count::{Counter, CounterKind, IMAGE_TOKENS, PONYBUNNY_CALL_TOKENS};
pub use engine::{
    AssembleRequest, Assembled, BootstrapRequest, BootstrapResult, CompactRequest, CompactResult,
    Compacted, CompactionTrigger, ContextEngine, EngineInfo, IdentifierPolicy, IngestRequest,
    IngestResult, SubagentEnd, SubagentSpawn, SummaryInstructions,
};
pub use entry::{Entry, EntryId, Facts, LoadMessage};
pub use error::{Error, ErrorKind, Result};
pub use health::{EngineFailure, EngineHealth, EngineNote, EngineState, LeaseState};
pub use hooks::{Installed, ToolHooks, ToolResultHook};
pub use json::RawJson;
pub use layer::{Layer, Pending, PendingCompaction, Prepared, TurnContext};
pub use ledger::{
    Calibration, KEEP_RECENT_MAX_SHARE, MIN_MESSAGE_TOKENS, RESERVE_MAX_SHARE, TokenLedger,
};
pub use manifest::{Action, Component, Edit, Manifest, ManifestEntry};
pub use memory::{MemoryStore, Passage, RecallRequest, RecalledFact, Recollection};
pub use message::{Block, Image, Message, Meta, Role, Timestamp, Usage};
pub use profile::{Profile, UnknownProfile};
pub use projection::{ContentHash, Projected, Projection, ProjectionKey};
pub use services::{
    BlobStore, Embedder, IdSource, ProjectionStore, SequentialIds, Services, Store,
};
pub use summary::{Summarizer, Summary, SummaryModels, SummaryRequest, Timer};
pub use tokens::{Chars, Tokens};
pub use tool::{CallId, CallSpelling, ToolCall, ToolResult};
pub use view::{
    CONTEXT_LIMIT_TRUNCATION_NOTICE, ContextView, Finished, MIDDLE_OMITTED_NOTICE,
    MISSING_RESULT_NOTICE, Node, NodeState, ORPHANED_RESULT, Place, ViewId, check_pairs,
    common_cap, shortened,
};
pub use workspace::{Snippet, SnippetSource, WorkspaceAnswer, WorkspaceSearch};

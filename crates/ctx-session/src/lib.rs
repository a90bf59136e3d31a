//! Agent transcripts on disk: formats, the entry tree, durable append, session store.

#![forbid(unsafe_code)]

mod blobs;
pub mod clock;
mod compactions;
mod convert;
mod discover;
mod engine_health;
mod entry;
mod erase;
mod formats;
pub mod key;
mod log;
mod overlay;
mod paths;
mod read;
mod retire;
mod schema;
mod source;
mod store;
mod stored;
mod transcript;
mod values;

pub(crate) use ctx_disk as disk;
pub use ctx_disk::{GroupCommit, is_newer, recover_journals};

pub use blobs::{FileBlobs, NoBlobs, blob_names_in};
pub use compactions::{
    CompactionAuthor, CoveredMessages, ReplayBranch, ReplayMessage, RewriteResult,
    StoredCompaction, UndoResult, rewrite_compacted, store_compaction, undo_compaction,
};
pub use convert::{ConversionResult, fork};
pub use discover::{AgentHomes, DiscoveredSession, Discovery};
pub use engine_health::{EngineHealthFile, FailedEngine, FailedEngines};
pub use entry::{EntryKind, TreeEntry};
pub use erase::{
    EraseCriteria, Erased, all_projections, erase_in_overlay, erase_in_session,
    erase_orphaned_overlay, overlay_projections, session_files,
};
pub use formats::{Agent, Format, LastUsage, is_transcript};
pub use log::{
    Durability, LogOptions, NewEntry, NewSession, RandomIds, SessionLock, SessionLog, is_foreign,
};
pub use overlay::{Overlay, open, save_projections};
pub use paths::{Home, with_home_hint};
pub use read::{Problem, ProblemKind, Severity, TranscriptHeader};
pub use retire::{RetiringSession, discard_session, remove_retired, retired_at, session_is_open};
pub use store::{ChatType, SessionEntry, SessionStore, Sessions};
pub use stored::{StoredSession, find_session};
pub use transcript::{
    BranchMessage, FilePlace, ReportedAnswer, SessionContext, Transcript, TranscriptStats,
};
pub use values::{FileStore, TransientStore, is_value_of};

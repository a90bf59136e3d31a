//! Agent transcripts on disk: formats, the entry tree, durable append, session store.

#![forbid(unsafe_code)]

pub mod blobs;
pub mod clock;
pub mod compactions;
mod convert;
pub mod discover;
pub mod engine_health;
mod entry;
pub mod erase;
mod formats;
pub mod key;
pub mod log;
mod newer;
pub mod overlay;
pub mod paths;
mod projections;
mod read;
pub mod retire;
mod schema;
mod source;
pub mod store;
mod transcript;
pub mod values;

pub(crate) use ctx_disk as disk;

pub use convert::{ConversionResult, ConvertOptions, fork};
pub use entry::{EntryKind, TreeEntry};
pub use formats::{Format, is_transcript};
pub use log::SessionLock;
pub use newer::is_newer;
pub use overlay::open;
pub use projections::{load_projections, save_projections};
pub use read::{Problem, ProblemKind, Severity, TranscriptHeader};
pub use source::Span;
pub use transcript::{BranchMessage, SessionContext, Transcript, TranscriptStats};

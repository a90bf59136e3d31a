//! Agent transcripts on disk: formats, the entry tree, durable append, session store.

#![forbid(unsafe_code)]

pub mod blobs;
mod disk;
pub mod group_commit;
pub mod key;
mod lock;
pub mod log;
pub mod overlay;
pub mod paths;
pub mod projections;
pub mod store;
mod builder;
mod context;
mod detect;
mod entry;
mod format;
mod header;
mod lines;
mod load;
mod problem;
mod read;
mod salvage;
mod source;
mod transcript;

pub use context::{LineItem, SessionContext};
pub use entry::{EntryKind, TreeEntry};
pub use format::Format;
pub use header::Header;
pub use problem::{Problem, ProblemKind};
pub use source::Span;
pub use transcript::{Stats, Transcript};

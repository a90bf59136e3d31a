//! Agent transcripts on disk: formats, the entry tree, durable append, session store.

#![forbid(unsafe_code)]

mod annex;
pub mod blobs;
mod branch;
mod builder;
pub mod clock;
pub mod compactions;
mod context;
mod convert;
mod detect;
pub mod discover;
pub mod engine_health;
mod entry;
pub mod erase;
mod fork;
mod format;
pub mod group_commit;
mod header;
mod hold;
mod inspect;
pub mod key;
mod left_out;
mod linear;
mod lines;
mod links;
mod load;
pub mod log;
mod opencode_db;
pub mod overlay;
pub mod paths;
mod ponybunny;
mod problem;
pub mod projections;
mod read;
mod repair;
pub mod retire;
mod salvage;
mod session_copy;
mod source;
mod sticky;
pub mod store;
mod transcript;
mod tree;
pub mod values;

pub(crate) use ctx_disk as disk;

pub use annex::open;
pub use context::{LineItem, SessionContext};
pub use convert::{ConvertOptions, Converted};
pub use entry::{EntryKind, TreeEntry};
pub use fork::fork;
pub use format::Format;
pub use header::Header;
pub use hold::Hold;
pub use problem::{Problem, ProblemKind, Severity};
pub use source::{Span, is_transcript};
pub use sticky::{keep_sent_forms, sent_forms};
pub use transcript::{Stats, Transcript};

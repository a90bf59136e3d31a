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

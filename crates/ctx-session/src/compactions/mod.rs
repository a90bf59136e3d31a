//! Compactions that are stored, seen and undone, whoever's file it is: in a session of ours they
//! are appended to the session itself, for any other file to its overlay.
//!
//! Nothing is ever deleted. What undoes a compaction is an entry that names it; what undoes that
//! one brings the compaction back.
//!
//! # Example
//!
//! ```
//! use ctx_core::{Compacted, Timestamp, Tokens};
//! use ctx_session::compactions::{store_compaction, undo_compaction};
//! use ctx_session::paths::Home;
//!
//! # let dir = tempfile::tempdir().unwrap();
//! # let home = Home::at(dir.path().join("home"));
//! # let path = dir.path().join("chat.json");
//! let chat = r#"[{"role":"user","content":"one"},{"role":"assistant","content":"two"}]"#;
//! std::fs::write(&path, chat).unwrap();
//! let compacted = Compacted {
//!     summary: "They counted.".into(),
//!     first_kept_entry_id: "00000001".into(),
//!     tokens_before: Tokens(2),
//!     tokens_after: None,
//!     details: None,
//!     staying: Vec::new(),
//!     projections: Vec::new(),
//! };
//! let id = store_compaction(&home, &path, None, &compacted, Timestamp(1))?;
//! let session = ctx_session::open(&home, &path)?;
//! assert_eq!(session.context(None)?.compaction, Some(id));
//! assert!(undo_compaction(&home, &path, None, Timestamp(2))?.is_some());
//! assert_eq!(ctx_session::open(&home, &path)?.context(None)?.compaction, None);
//! # Ok::<(), ctx_core::Error>(())
//! ```

mod archive;
mod body;
mod forms;
#[cfg(test)]
mod full_disk;
mod list;
mod place;
mod replay;
mod rewrite;
mod store;
mod undo;

pub(crate) use archive::{archives_of, clear_stale};
pub(crate) use body::{CompactionBody, MARK, Mark};
pub use list::{CompactedBy, Covered, StoredCompaction};
pub(crate) use place::is_foreign;
pub use replay::{ReplayItem, ReplayLine};
pub use rewrite::{Rewritten, rewrite_compacted};
pub use store::store_compaction;
pub use undo::{Undone, undo_compaction};

//! Storing, listing and undoing compactions. The compactions of a ctx session are appended to the
//! session, the compactions of any other file to its overlay.
//!
//! No entry is deleted. An undo is an entry that names the compaction; undoing the undo restores
//! the compaction.
//!
//! # Example
//!
//! ```
//! use ctx_core::{Compacted, Timestamp, Tokens};
//! use ctx_session::{store_compaction, undo_compaction};
//! use ctx_session::Home;
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
mod list;
mod replay;
mod rewrite;
mod store;
mod target;
#[cfg(test)]
mod tests;
mod undo;

pub(crate) use archive::{archives_of, clear_stale};
pub use list::{CompactionAuthor, CoveredMessages, StoredCompaction};
pub use replay::{ReplayBranch, ReplayMessage};
pub use rewrite::{RewriteResult, rewrite_compacted};
pub use store::store_compaction;
pub use undo::{UndoResult, undo_compaction};

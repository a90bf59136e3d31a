//! Erasing messages, and text derived from them, from ctx sessions and from the overlays of other
//! files.
//!
//! ```text
//! ctx session:        rewritten without the messages and the summary lines derived from them
//! archived sessions:  the same
//! any other file:     not written; its overlay, rewritten the same way, hides the messages
//! ```
//!
//! Each file is replaced atomically, so a crash leaves the old one or the new one, and a second run
//! completes the work of the first. A compaction whose messages were erased can still be undone;
//! the erased messages stay erased.

mod cited;
mod overlay;
mod session;
mod texts;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use ctx_core::{EntryId, Projection, Result};
use serde::Serialize;

use crate::compactions::archives_of;
use crate::entry::MessageEncoding;
use crate::overlay::Overlay;
use crate::paths::Home;
use crate::transcript::{Transcript, read_projections};

pub use overlay::{erase_in_overlay, erase_orphaned_overlay};
pub use session::erase_in_session;

use cited::CitedEntries;

/// What to erase from a transcript.
#[derive(Clone, Copy)]
pub struct EraseCriteria<'a> {
    /// The entries whose messages are erased.
    pub entries: &'a HashSet<EntryId>,
    /// Whether to erase everything, not only `entries`.
    pub all: bool,
    /// Whether a text derived from messages (a line of a summary, a note) mentions erased content.
    pub derived: &'a dyn Fn(&str) -> bool,
    /// Whether a text contains erased content verbatim.
    pub holds: &'a dyn Fn(&str) -> bool,
}

impl Transcript {
    /// Returns the messages of the file, on all branches, in which any text matches: text,
    /// thinking, arguments and results of tools, and all other content.
    ///
    /// # Errors
    ///
    /// Errors from reading an entry.
    pub fn messages_containing(&self, holds: &dyn Fn(&str) -> bool) -> Result<Vec<EntryId>> {
        let mut found = Vec::new();
        for entry in self.file_entries() {
            let is_message = entry.encoding != MessageEncoding::Nothing && !entry.is_compaction();
            if is_message && texts::holds(&self.text(entry)?, holds) {
                let head = entry.head.and_then(|head| self.entries.get(head as usize));
                found.push(head.unwrap_or(entry).id.clone());
            }
        }
        found.dedup();
        Ok(found)
    }
}

/// Returns a session and the archives of its rewrites, newest first.
pub fn session_files(path: &Path) -> Vec<PathBuf> {
    let archives = archives_of(path).into_iter().rev();
    std::iter::once(path.to_owned()).chain(archives).collect()
}

/// Returns all projections of the transcript at `path`, whether in force or not.
///
/// # Errors
///
/// [`ErrorKind::Io`](ctx_core::ErrorKind::Io) if an existing file cannot be read.
pub fn all_projections(home: &Home, path: &Path) -> Result<Vec<Projection>> {
    let overlay = Overlay::of(home, path)?;
    let mut projections = Vec::new();
    for file in session_files(path).into_iter().chain([overlay.path]) {
        if file.is_file() {
            projections.extend(overlay_projections(&file)?);
        }
    }
    Ok(projections)
}

/// Returns all projections in an overlay, even if its transcript no longer exists.
///
/// # Errors
///
/// [`ErrorKind::Io`](ctx_core::ErrorKind::Io) if it cannot be read.
pub fn overlay_projections(overlay: &Path) -> Result<Vec<Projection>> {
    Ok(read_projections(overlay)?.into_iter().flat_map(|kept| kept.projections).collect())
}

/// What was erased from a file, or would be in a dry run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Erased {
    /// The file.
    pub path: PathBuf,
    /// The number of erased messages.
    pub messages: usize,
    /// The number of hidden messages of another program's file, which still contains them.
    pub hidden: usize,
    /// The number of erased summary lines.
    pub summary_lines: usize,
    /// The number of erased projections.
    pub forms: usize,
    /// The number of other erased entries: labels, names, edits, unreadable lines.
    pub others: usize,
    /// Compactions that replace an erased message. Undoing them does not restore it.
    pub undo_ended: Vec<EntryId>,
}

impl Erased {
    /// Whether the file is unchanged.
    pub fn is_nothing(&self) -> bool {
        self.messages + self.hidden + self.summary_lines + self.forms + self.others == 0
    }
}

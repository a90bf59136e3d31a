//! Erasing messages: from sessions of ours, from what ctx keeps beside the files of others, and from
//! what was drawn from them there.
//!
//! ```text
//! session of ours:  its lines without the messages, its summaries without the lines drawn from them
//! archived ones:    the same, each of them
//! file of others:   not written; its overlay, rewritten the same way, hides the messages
//! ```
//!
//! Each file is replaced in one step, so that a crash leaves the old one or the new one, and a second
//! run does what the first did not come to. A compaction whose messages were erased can still be
//! undone; what was erased does not come back by it.

mod beside;
mod hidden;
mod mark;
mod session;
mod summary;
mod texts;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use ctx_core::{EntryId, Projection, Result};
use serde::Serialize;

use crate::compactions::archives_of;
use crate::load::Recipe;
use crate::overlay::Overlay;
use crate::paths::Home;
use crate::projections::read_kept;
use crate::transcript::Transcript;

pub use beside::{erase_beside, erase_from_overlay};
pub use session::erase_from_session;

pub(crate) use hidden::{FORGOTTEN_TYPE, Forgotten, forgotten_of};
pub(crate) use mark::Cited;

/// What is to be erased from a transcript.
#[derive(Clone, Copy)]
pub struct Erasing<'a> {
    /// The entries whose messages go.
    pub entries: &'a HashSet<EntryId>,
    /// Everything goes, whatever `entries` names.
    pub all: bool,
    /// Whether a text that was made of messages (a line of a summary, a note) tells what goes.
    pub derived: &'a dyn Fn(&str) -> bool,
    /// Whether any text holds what goes, word for word.
    pub holds: &'a dyn Fn(&str) -> bool,
}

impl Transcript {
    /// The messages of the file, on all branches, in which a text of any kind holds what is looked
    /// for: what was said and thought, arguments and results of tools, whatever else stands there.
    ///
    /// # Errors
    ///
    /// What reading an entry may give.
    pub fn messages_holding(&self, holds: &dyn Fn(&str) -> bool) -> Result<Vec<EntryId>> {
        let mut found = Vec::new();
        for entry in self.file_entries() {
            let is_message = entry.recipe != Recipe::Nothing && !entry.is_compaction();
            if is_message && texts::holds(&self.text(entry)?, holds) {
                let head = entry.head.and_then(|head| self.entries.get(head as usize));
                found.push(head.unwrap_or(entry).id.clone());
            }
        }
        found.dedup();
        Ok(found)
    }
}

/// A session and those that were archived beside it when it was rewritten, newest first.
#[must_use]
pub fn files_of(path: &Path) -> Vec<PathBuf> {
    let archives = archives_of(path).into_iter().rev();
    std::iter::once(path.to_owned()).chain(archives).collect()
}

/// Every form in which a message of the transcript at `path` was sent, whatever became of it since.
///
/// # Errors
///
/// [`ErrorKind::Io`](ctx_core::ErrorKind::Io) if a file that is there cannot be read.
pub fn forms_kept(home: &Home, path: &Path) -> Result<Vec<Projection>> {
    let overlay = Overlay::of(home, path)?;
    let mut forms = Vec::new();
    for file in files_of(path).iter().map(PathBuf::as_path).chain([overlay.path()]) {
        if file.is_file() {
            forms.extend(read_kept(file)?.into_iter().flat_map(|kept| kept.projections));
        }
    }
    Ok(forms)
}

/// Every form that an overlay tells of, also where its transcript is not there any more.
///
/// # Errors
///
/// [`ErrorKind::Io`](ctx_core::ErrorKind::Io) if it cannot be read.
pub fn forms_in(overlay: &Path) -> Result<Vec<Projection>> {
    Ok(read_kept(overlay)?.into_iter().flat_map(|kept| kept.projections).collect())
}

/// What was erased from a file, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Erased {
    /// The file.
    pub path: PathBuf,
    /// Messages that went.
    pub messages: usize,
    /// Messages of another program's file that are hidden: the file still holds them.
    pub hidden: usize,
    /// Lines of summaries that went.
    pub summary_lines: usize,
    /// Forms in which messages were sent that went.
    pub forms: usize,
    /// Other entries that went: labels, names, edits, lines that could not be read.
    pub others: usize,
    /// Compactions that stand for a message that went. To undo them brings it back no more.
    pub undo_ended: Vec<EntryId>,
}

impl Erased {
    /// Whether the file is as it was.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.messages + self.hidden + self.summary_lines + self.forms + self.others == 0
    }
}

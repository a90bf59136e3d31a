//! The messages that a compaction replaces, and the summary before them.

use std::sync::Arc;

use ctx_core::{Entry, EntryId, Message, Tokens};

use crate::FileLists;

/// A full message and the id of its entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CitedMessage {
    /// The entry's id.
    pub id: EntryId,
    /// The message as recorded, without changes by layers.
    pub message: Arc<Message>,
    /// Whether it was pinned.
    pub pinned: bool,
}

impl CitedMessage {
    /// Returns the message of an entry. `None` if it cannot be read, or is never sent to a model.
    #[must_use]
    pub fn of(entry: &Entry) -> Option<Self> {
        let message = entry.message().ok().filter(|message| message.in_model_context())?;
        Some(Self { id: entry.id().clone(), message, pinned: false })
    }
}

/// The summary of an earlier compaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreviousSummary {
    /// Its text.
    pub text: String,
    /// The entry to cite for lines without a citation. `None` if the text comes from several
    /// summaries, or is in no transcript.
    pub entry: Option<EntryId>,
    /// Files it lists as read and modified.
    pub files: FileLists,
    /// Its tokens.
    pub tokens: Tokens,
}

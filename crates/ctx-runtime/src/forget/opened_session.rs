//! A session with all its files, opened.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ctx_core::{Entry, EntryId, Error, Result};
use ctx_session::{Home, Transcript, session_files};
use indexmap::IndexMap;

use super::search_text::SearchText;
use crate::memory::memory_session;

/// A session with its archived transcripts.
pub(super) struct OpenedSession {
    pub(super) path: PathBuf,
    /// Its names: keys, id, path; the file name if it has no id.
    pub(super) names: BTreeSet<String>,
    /// Its name in memory.
    pub(super) in_memory: String,
    pub(super) is_ours: bool,
    transcripts: Vec<Transcript>,
    /// All messages of all its files, oldest file first.
    pub(super) messages: IndexMap<EntryId, Arc<Entry>>,
    /// Archived transcripts that cannot be read, and why.
    pub(super) unread: Vec<(PathBuf, Error)>,
}

impl OpenedSession {
    pub(super) fn of(home: &Home, path: &Path, names: &BTreeSet<String>) -> Result<Self> {
        let (path, mut names) = (path.to_owned(), names.clone());
        let open = |path: &PathBuf| ctx_session::open(home, path);
        let first = open(&path)?;
        let in_memory = memory_session(first.header.id.as_deref(), &path);
        names.insert(in_memory.clone());
        let is_ours = first.is_ctx_session();
        let mut transcripts = vec![first];
        let mut unread = Vec::new();
        for file in session_files(&path).into_iter().skip(1).filter(|_| is_ours) {
            match open(&file) {
                Ok(archived) => transcripts.push(archived),
                Err(error) => unread.push((file, error)),
            }
        }
        let mut messages = IndexMap::new();
        // If several files contain an entry, the newest file's version is used.
        for entry in transcripts.iter().rev().flat_map(Transcript::all_messages) {
            messages.insert(entry.id().clone(), entry);
        }
        Ok(Self { path, names, in_memory, is_ours, transcripts, messages, unread })
    }

    /// Returns the messages that contain a text.
    pub(super) fn holding(&self, needle: Option<&SearchText>) -> Result<HashSet<EntryId>> {
        let Some(needle) = needle else { return Ok(HashSet::new()) };
        let mut found = HashSet::new();
        for transcript in &self.transcripts {
            found.extend(transcript.messages_containing(&|text| needle.is_in(text))?);
        }
        Ok(found)
    }

    /// Whether the file of another program contains a text, even if only in messages that ctx has
    /// already forgotten.
    pub(super) fn file_holds(&self, needle: Option<&SearchText>) -> Result<bool> {
        let Some(needle) = needle.filter(|_| !self.is_ours) else { return Ok(false) };
        let alone = Transcript::open(&self.path)?;
        Ok(!alone.messages_containing(&|text| needle.is_in(text))?.is_empty())
    }

    /// Finds the message of an entry by its id or a prefix of it.
    pub(super) fn find(&self, id: &str) -> Result<Option<Arc<Entry>>> {
        for transcript in &self.transcripts {
            let Some(found) = transcript.find(id) else { continue };
            if let Some(entry) = self.messages.get(&found) {
                return Ok(Some(entry.clone()));
            }
            // A message written over several lines is identified by the id of any of them.
            let line = transcript.messages_to(Some(&found))?;
            if let Some(item) =
                line.last().filter(|item| self.messages.contains_key(item.entry.id()))
            {
                let is_message =
                    transcript.index_of(&found).and_then(|at| transcript.entries.get(at));
                if is_message.is_some_and(ctx_session::TreeEntry::is_message) {
                    return Ok(Some(item.entry.clone()));
                }
            }
        }
        Ok(None)
    }
}

//! A session with all its files, opened.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use ctx_core::{Entry, EntryId, Error, Result};
use ctx_session::Transcript;
use ctx_session::erase::files_of;
use ctx_session::paths::Home;
use indexmap::IndexMap;

use super::places::Place;
use super::words::Needle;
use crate::memory_session;

/// A session with those that were archived beside it.
pub(super) struct Opened {
    pub(super) path: PathBuf,
    /// What it may be called: keys, its id, its path; the name of the file where it has no id.
    pub(super) names: BTreeSet<String>,
    /// The name under which it stands in memory.
    pub(super) in_memory: String,
    pub(super) is_ours: bool,
    transcripts: Vec<Transcript>,
    /// All messages of all of them, those of the oldest file first.
    pub(super) messages: IndexMap<EntryId, Arc<Entry>>,
    /// What was archived beside it and cannot be read, and why.
    pub(super) unread: Vec<(PathBuf, Error)>,
}

impl Opened {
    pub(super) fn of(home: &Home, place: &Place) -> Result<Self> {
        let Place { path, mut names } = place.clone();
        let open = |path: &PathBuf| ctx_session::open(home, path);
        let first = open(&path)?;
        let in_memory = memory_session(first.header().id.as_deref(), &path);
        names.insert(in_memory.clone());
        let is_ours = first.is_ours();
        let mut transcripts = vec![first];
        let mut unread = Vec::new();
        for file in files_of(&path).into_iter().skip(1).filter(|_| is_ours) {
            match open(&file) {
                Ok(archived) => transcripts.push(archived),
                Err(error) => unread.push((file, error)),
            }
        }
        let mut messages = IndexMap::new();
        // What is in several is as the newest has it.
        for entry in transcripts.iter().rev().flat_map(Transcript::all_messages) {
            messages.insert(entry.id().clone(), entry);
        }
        Ok(Self { path, names, in_memory, is_ours, transcripts, messages, unread })
    }

    /// The messages that hold a text.
    pub(super) fn holding(&self, needle: Option<&Needle>) -> Result<HashSet<EntryId>> {
        let Some(needle) = needle else { return Ok(HashSet::new()) };
        let mut found = HashSet::new();
        for transcript in &self.transcripts {
            found.extend(transcript.messages_holding(&|text| needle.is_in(text))?);
        }
        Ok(found)
    }

    /// Whether the file of another program holds a text, whatever ctx was told to forget of it.
    pub(super) fn file_holds(&self, needle: Option<&Needle>) -> Result<bool> {
        let Some(needle) = needle.filter(|_| !self.is_ours) else { return Ok(false) };
        let alone = Transcript::open(&self.path)?;
        Ok(!alone.messages_holding(&|text| needle.is_in(text))?.is_empty())
    }

    /// The message of an entry that somebody named, by its id or the beginning of it.
    pub(super) fn find(&self, id: &str) -> Result<Option<Arc<Entry>>> {
        for transcript in &self.transcripts {
            let Some(found) = transcript.find(id) else { continue };
            if let Some(entry) = self.messages.get(&found) {
                return Ok(Some(entry.clone()));
            }
            // A message that was written over several lines is named by any of them.
            let line = transcript.line_to(Some(&found))?;
            if let Some(item) =
                line.last().filter(|item| self.messages.contains_key(item.entry.id()))
            {
                let is_message =
                    transcript.index_of(&found).and_then(|at| transcript.entries().get(at));
                if is_message.is_some_and(ctx_session::TreeEntry::is_message) {
                    return Ok(Some(item.entry.clone()));
                }
            }
        }
        Ok(None)
    }
}

//! The effects of a branch: its compactions, undos and edits.

use ctx_core::text::Slice;
use std::collections::HashMap;

use ctx_core::{Result, Role};

use crate::entry::{Audience, Detail, EntryKind, MessagePart, TreeEntry};
use crate::transcript::Transcript;

/// The effects of a branch.
pub(crate) struct Branch {
    pub(crate) path: Vec<usize>,
    /// Positions on the path of the compactions that were not undone.
    pub(crate) compactions: Vec<usize>,
    /// Compactions and undos that were undone, each with the entry that undid it.
    pub(crate) undone: HashMap<usize, usize>,
    /// The newest edit of each edited entry.
    pub(crate) edits: HashMap<u32, usize>,
}

/// The beginning of the part that a compaction keeps.
pub(crate) struct FirstKept {
    /// The position on the path; the compaction's own position if nothing before it is kept.
    pub(crate) place: usize,
    /// If a history in a single entry is kept in part, how many of its messages are not kept.
    pub(crate) skip: Option<u32>,
}

impl Branch {
    pub(crate) fn of(transcript: &Transcript, path: Vec<usize>) -> Self {
        let mut compactions = Vec::new();
        let mut edits = HashMap::new();
        let mut undoings = Vec::new();
        for (at, &index) in path.iter().enumerate() {
            let Some(entry) = transcript.entries.get(index) else { continue };
            match entry.detail.as_deref() {
                Some(Detail::Compaction { .. }) => compactions.push(at),
                Some(Detail::Edit { target: Some(target) }) => {
                    edits.insert(*target, index);
                }
                Some(Detail::Undo { target: Some(target) }) => {
                    undoings.push((index, *target as usize));
                }
                _ => {}
            }
        }
        // From the newest, so that an undo that was itself undone is known before it is applied.
        let mut undone = HashMap::new();
        for (index, target) in undoings.into_iter().rev() {
            if !undone.contains_key(&index) {
                undone.entry(target).or_insert(index);
            }
        }
        compactions.retain(|&at| !undone.contains_key(&path[at]));
        Self { path, compactions, undone, edits }
    }

    /// Finds where the kept part begins on the path, for the compaction at position `at`.
    pub(crate) fn first_kept(&self, transcript: &Transcript, at: usize) -> FirstKept {
        let entry = self.path.get(at).and_then(|&index| transcript.entries.get(index));
        let (first_kept, skip) = match entry.and_then(|entry| entry.detail.as_deref()) {
            Some(Detail::Compaction { first_kept, skip }) => (*first_kept, *skip),
            _ => (None, None),
        };
        let before = self.path.slice(..at);
        // Indices increase along a path.
        let place = first_kept.and_then(|index| before.binary_search(&(index as usize)).ok());
        match place {
            Some(place) => FirstKept { place, skip },
            None => FirstKept { place: at, skip: None },
        }
    }

    fn entries<'t>(&self, transcript: &'t Transcript) -> impl Iterator<Item = &'t TreeEntry> {
        self.path.iter().rev().filter_map(|&index| transcript.entries.get(index))
    }

    pub(crate) fn thinking_level(&self, transcript: &Transcript) -> String {
        let level = self.entries(transcript).find_map(|entry| match entry.detail.as_deref() {
            Some(Detail::Thinking(level)) => Some(level.to_string()),
            _ => None,
        });
        level.unwrap_or_else(|| "off".to_owned())
    }

    /// Returns the model that was last set or that last answered. Reads only one message: if that
    /// answer does not name its model, neither do earlier ones.
    pub(crate) fn model(&self, transcript: &Transcript) -> Result<Option<(String, String)>> {
        let mut loaded = false;
        for entry in self.entries(transcript) {
            if let Some(Detail::Model { provider, model }) = entry.detail.as_deref() {
                return Ok(Some((provider.to_string(), model.to_string())));
            }
            let answer = entry.kind == EntryKind::Message && entry.role == Some(Role::Assistant);
            if answer && !loaded && entry.audience == Audience::Model {
                loaded = true;
                let meta = MessagePart::of(entry).load(transcript.source_of(entry))?.meta;
                if let Some(model) = meta.model {
                    return Ok(Some((meta.provider.unwrap_or_default(), model)));
                }
            }
        }
        Ok(transcript.model.clone())
    }
}

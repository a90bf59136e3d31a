//! What a walk along a branch finds: its compactions, what was undone, its edits.

use std::collections::{HashMap, HashSet};

use ctx_core::{Result, Role};

use crate::entry::{Audience, Detail, EntryKind, TreeEntry};
use crate::load::Part;
use crate::transcript::Transcript;

/// What a walk along a branch finds.
pub(crate) struct Branch {
    pub(crate) path: Vec<usize>,
    /// Places on the path of the compactions that were not undone.
    pub(crate) compactions: Vec<usize>,
    /// Compactions, and undoings, that were undone: each with the entry that did it.
    pub(crate) undone: HashMap<usize, usize>,
    /// The newest edit of each edited entry.
    pub(crate) edits: HashMap<u32, usize>,
}

/// Where a compaction's kept part begins.
pub(crate) struct FirstKept {
    /// The place on the path; the compaction's own where nothing before it is kept.
    pub(crate) place: usize,
    /// Where a history that stands in a single entry is kept in part: how much of it is not.
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
        // From the newest: whether an undoing was itself undone is known before it counts.
        let mut undone = HashMap::new();
        for (index, target) in undoings.into_iter().rev() {
            if !undone.contains_key(&index) {
                undone.entry(target).or_insert(index);
            }
        }
        compactions.retain(|&at| !undone.contains_key(&path[at]));
        Self { path, compactions, undone, edits }
    }

    /// The indices of the compactions in force.
    pub(crate) fn in_force(&self) -> HashSet<usize> {
        self.compactions.iter().filter_map(|&at| self.path.get(at).copied()).collect()
    }

    /// Where on the path the kept part begins, for the compaction at place `at`.
    pub(crate) fn first_kept(&self, transcript: &Transcript, at: usize) -> FirstKept {
        let entry = self.path.get(at).and_then(|&index| transcript.entries.get(index));
        let (first_kept, skip) = match entry.and_then(|entry| entry.detail.as_deref()) {
            Some(Detail::Compaction { first_kept, skip }) => (*first_kept, *skip),
            _ => (None, None),
        };
        let before = self.path.get(..at).unwrap_or_default();
        // Indices grow along a path.
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

    /// What was set or answered last. Only one message is read for it: an answer that does not
    /// name its model says nothing, and neither would those before it.
    pub(crate) fn model(&self, transcript: &Transcript) -> Result<Option<(String, String)>> {
        let mut asked = false;
        for entry in self.entries(transcript) {
            if let Some(Detail::Model { provider, model }) = entry.detail.as_deref() {
                return Ok(Some((provider.to_string(), model.to_string())));
            }
            let answer = entry.kind == EntryKind::Message && entry.role == Some(Role::Assistant);
            if answer && !asked && entry.audience == Audience::Model {
                asked = true;
                let meta = Part::of(entry).load(transcript.source_of(entry))?.meta;
                if let Some(model) = meta.model {
                    return Ok(Some((meta.provider.unwrap_or_default(), model)));
                }
            }
        }
        Ok(transcript.model.clone())
    }
}

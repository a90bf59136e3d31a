//! Adds segments to the archive.

use ctx_core::Result;

use super::segments::Segments;
use ctx_search::block::is_recalled;
use ctx_search::{Segment, SegmentId};

/// The result of adding a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddOutcome {
    /// It was added.
    New,
    /// It was already there.
    Duplicate,
    /// It was forgotten earlier and is not added.
    Forgotten,
    /// It is empty, or holds recalled text.
    Empty,
}

impl Segments {
    /// Adds a segment, to be written by the next [`commit`](Self::commit), unless it exists, was
    /// forgotten, is empty, or holds recalled text.
    ///
    /// # Errors
    ///
    /// If it cannot be written as JSON.
    pub(crate) fn insert(&mut self, segment: &Segment) -> Result<AddOutcome> {
        let id = segment.id;
        if segment.content.trim().is_empty() || is_recalled(&segment.content) {
            return Ok(AddOutcome::Empty);
        }
        if self.places.contains_key(&id) || self.waiting.contains(&id) {
            return Ok(AddOutcome::Duplicate);
        }
        if self.forgotten.contains(id) {
            return Ok(AddOutcome::Forgotten);
        }
        let mut line = serde_json::to_vec(segment)
            .map_err(|e| self.file.failed("cannot write a segment", e.into()))?;
        line.push(b'\n');
        self.waiting.insert(id);
        self.pending.push((id, line));
        Ok(AddOutcome::New)
    }

    /// Whether a segment was forgotten, as far as this process has read.
    pub(crate) fn is_forgotten(&self, id: SegmentId) -> bool {
        self.forgotten.contains(id)
    }
}

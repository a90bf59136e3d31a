//! What is taken in, and what is not.

use ctx_core::Result;

use super::segments::Segments;
use crate::recall::is_recalled;
use crate::{Segment, SegmentId};

/// What became of a segment that was to be taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Taken {
    /// It is in the archive now.
    New,
    /// It was there.
    Known,
    /// It was forgotten, and stays out.
    Forgotten,
    /// It says nothing, or holds what was recalled.
    Nothing,
}

impl Segments {
    /// Takes a segment in, to be written by the next [`commit`](Self::commit). False if it is there
    /// already, was forgotten, says nothing, or holds what was recalled.
    pub fn add(&mut self, segment: &Segment) -> Result<bool> {
        Ok(self.take_in(segment)? == Taken::New)
    }

    /// The same, and says what became of it.
    ///
    /// # Errors
    ///
    /// If it cannot be written as JSON.
    pub fn take_in(&mut self, segment: &Segment) -> Result<Taken> {
        let id = segment.id;
        if segment.content.trim().is_empty() || is_recalled(&segment.content) {
            return Ok(Taken::Nothing);
        }
        if self.places.contains_key(&id) || self.waiting.contains(&id) {
            return Ok(Taken::Known);
        }
        if self.forgotten.contains(id) {
            return Ok(Taken::Forgotten);
        }
        let mut line = serde_json::to_vec(segment)
            .map_err(|e| self.file.failed("cannot write a segment", e.into()))?;
        line.push(b'\n');
        self.waiting.insert(id);
        self.pending.push((id, line));
        Ok(Taken::New)
    }

    /// Whether a segment was forgotten, as far as is known.
    #[must_use]
    pub fn is_forgotten(&self, id: SegmentId) -> bool {
        self.forgotten.contains(id)
    }
}

//! The source of segments: the archive on disk, or memory.

use std::collections::HashSet;
use std::fmt::Debug;

use ctx_core::{Result, Timestamp};

use super::row::ArchiveRow;
use super::segments::Changes;
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

/// The source of truth, from which everything else in a store is derived.
pub(crate) trait Source: Debug + Send {
    /// Adds a segment, to be written by the next [`commit`](Self::commit), unless it exists, was
    /// forgotten, is empty, or holds recalled text.
    ///
    /// # Errors
    ///
    /// If it cannot be written as JSON.
    fn insert(&mut self, segment: &Segment) -> Result<AddOutcome>;

    /// Whether a segment was forgotten, as far as this process has read.
    fn is_forgotten(&self, id: SegmentId) -> bool;

    /// Returns the ids of all forgotten segments, as far as this process has read.
    fn forgotten(&self) -> Vec<SegmentId>;

    /// Writes waiting segments, and evicts those that are too old or too many. When this returns,
    /// they are on the disk.
    ///
    /// # Errors
    ///
    /// If the lock cannot be taken or the file cannot be written. The segments keep waiting.
    fn commit(&mut self, now: Timestamp) -> Result<Changes>;

    /// Returns other processes' changes. Nothing is written.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    fn refresh(&mut self) -> Result<Changes>;

    /// Returns segments with their texts, in the order of `ids`; `None` for missing ones. Rescans a
    /// file that was replaced. A line that turns out not to be a segment counts as unreadable from
    /// then on.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    fn get(&mut self, ids: &[SegmentId]) -> Result<Vec<Option<Segment>>>;

    /// Removes segments from memory and from the disk, and returns how many existed. Their ids are
    /// kept, so they cannot be added again. Torn and unreadable lines are removed as well, because
    /// they may contain forgotten text.
    ///
    /// # Errors
    ///
    /// If the lock cannot be taken or the file cannot be written. Nothing is forgotten then.
    fn forget(&mut self, ids: &HashSet<SegmentId>) -> Result<usize>;

    /// Visits the segments without their texts, in order.
    fn each_row(&self, each: &mut dyn FnMut(ArchiveRow<'_>));

    /// The number of segments.
    fn count(&self) -> usize;

    /// The number of unreadable lines.
    fn unreadable(&self) -> usize {
        0
    }

    /// Returns the offset and the length (without the line break) of a segment's line, if it is in a
    /// file. They are valid until the file is rewritten.
    fn place(&self, _: SegmentId) -> Option<(u64, u32)> {
        None
    }
}

//! Adds segments.

use std::collections::HashSet;

use ctx_core::{Result, Timestamp};

use super::Memory;
use crate::archive::AddOutcome;
use ctx_search::{Segment, SegmentId};

impl Memory {
    /// Adds segments and returns how many are new. They can be searched at once; they are on disk
    /// after [`flush`](Self::flush).
    ///
    /// # Errors
    ///
    /// If the archive cannot be read.
    pub fn add(&self, segments: &[Segment]) -> Result<usize> {
        let taken = self.insert(segments)?;
        Ok(taken.into_iter().filter(|taken| *taken == AddOutcome::New).count())
    }

    /// Like [`add`](Self::add), but returns the result for each segment.
    ///
    /// # Errors
    ///
    /// If the archive cannot be read.
    pub fn insert<'s>(
        &self,
        segments: impl IntoIterator<Item = &'s Segment>,
    ) -> Result<Vec<AddOutcome>> {
        let mut all = Vec::new();
        {
            let mut source = self.inner.opened()?;
            for segment in segments {
                let taken = source.insert(segment)?;
                if taken == AddOutcome::New {
                    self.inner.show(segment, true);
                }
                all.push(taken);
            }
        }
        self.nudge();
        Ok(all)
    }

    /// Calls `each` with the id of each segment, in the order of archiving.
    ///
    /// # Errors
    ///
    /// If the archive cannot be read.
    pub fn each_id(&self, each: &mut dyn FnMut(SegmentId)) -> Result<()> {
        self.inner.opened()?.each_row(&mut |row| each(row.id));
        Ok(())
    }

    /// Returns the ids of the segments that were forgotten.
    ///
    /// # Errors
    ///
    /// If the archive cannot be read.
    pub fn forgotten(&self) -> Result<Vec<SegmentId>> {
        Ok(self.inner.opened()?.forgotten())
    }

    /// Returns which of the segments in `coming` would not fit into the archive, because they would
    /// be among the oldest by message time. Segments that exist or are forgotten are not included.
    /// `coming` must be in the order of archiving.
    ///
    /// # Errors
    ///
    /// If the archive cannot be read.
    pub fn would_evict(&self, coming: &[(SegmentId, Timestamp)]) -> Result<HashSet<SegmentId>> {
        let source = self.inner.opened()?;
        let most = self.inner.settings.limits.max_segments;
        let mut known = HashSet::new();
        // Existing segments are evicted before others of the same time.
        let mut all: Vec<(Timestamp, usize)> = Vec::new();
        source.each_row(&mut |row| {
            known.insert(row.id);
            all.push((row.timestamp, 0));
        });
        let live = self.inner.live();
        for (id, segment) in &live.pending {
            if known.insert(*id) {
                all.push((segment.timestamp, 0));
            }
        }
        for (nth, (id, time)) in coming.iter().enumerate() {
            if !source.is_forgotten(*id) && known.insert(*id) {
                all.push((*time, nth + 1));
            }
        }
        let over = all.len().saturating_sub(most);
        if over == 0 {
            return Ok(HashSet::new());
        }
        all.select_nth_unstable(over - 1);
        let nth = all.iter().take(over).filter_map(|(_, nth)| nth.checked_sub(1));
        Ok(nth.filter_map(|nth| coming.get(nth)).map(|(id, _)| *id).collect())
    }
}

//! Taking segments in.

use std::collections::HashSet;

use ctx_core::{Result, Timestamp};

use super::Memory;
use crate::archive::Taken;
use crate::{Segment, SegmentId};

impl Memory {
    /// Takes segments in, and says how many are new. They are found at once; they are on disk once
    /// [`flush`](Self::flush) returned.
    ///
    /// # Errors
    ///
    /// Where the archive cannot be read.
    pub fn add(&self, segments: &[Segment]) -> Result<usize> {
        let taken = self.take_in(segments)?;
        Ok(taken.into_iter().filter(|taken| *taken == Taken::New).count())
    }

    /// The same, and says what became of each.
    ///
    /// # Errors
    ///
    /// Where the archive cannot be read.
    pub fn take_in<'s>(
        &self,
        segments: impl IntoIterator<Item = &'s Segment>,
    ) -> Result<Vec<Taken>> {
        let mut all = Vec::new();
        {
            let mut source = self.inner.opened()?;
            for segment in segments {
                let taken = source.take_in(segment)?;
                if taken == Taken::New {
                    self.inner.show(segment, true);
                }
                all.push(taken);
            }
        }
        self.nudge();
        Ok(all)
    }

    /// Which of the segments that are to come would be among the oldest, by when they were said, that
    /// the archive has no room for, were all of them taken in. Those that are there, or stay out, are
    /// not among them. They are in the order in which they would come.
    ///
    /// # Errors
    ///
    /// Where the archive cannot be read.
    pub fn without_room(&self, coming: &[(SegmentId, Timestamp)]) -> Result<HashSet<SegmentId>> {
        let source = self.inner.opened()?;
        let most = self.inner.settings.limits.max_segments;
        let mut known = HashSet::new();
        // Those that are there go before others of their time.
        let mut all: Vec<(Timestamp, usize)> = Vec::new();
        source.each_row(|id, _, time, _| {
            known.insert(id);
            all.push((time, 0));
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

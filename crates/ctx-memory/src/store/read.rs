//! Reads segments concurrently with writers.

use std::fs::File;

use ctx_core::Result;

use super::{Inner, Memory};
use crate::disk;
use ctx_search::{Segment, SegmentId};

/// The number of segments in memory at once while all are scanned.
const AT_ONCE: usize = 256;

impl Memory {
    /// Returns the segments for which `wanted` returns true, in the order of arrival. Reads all
    /// segments.
    ///
    /// # Errors
    ///
    /// If the archive cannot be read.
    pub fn select(&self, mut wanted: impl FnMut(&Segment) -> bool) -> Result<Vec<Segment>> {
        self.inner.ensure_open()?;
        let ids: Vec<SegmentId> = {
            let live = self.inner.live();
            let ids = live.index.ids().iter().copied();
            ids.filter(|id| live.row(*id).is_some()).collect()
        };
        let mut found = Vec::new();
        for ids in ids.chunks(AT_ONCE) {
            let segments = self.get(ids)?.into_iter().flatten();
            found.extend(segments.filter(|segment| wanted(segment)));
        }
        Ok(found)
    }
}

impl Inner {
    /// Returns segments by their ids. Does not wait for writers: it reads the file at the last
    /// known places. It asks the source only if the segments are not there, because the file was
    /// rewritten.
    pub(super) fn get(&self, ids: &[SegmentId]) -> Result<Vec<Option<Segment>>> {
        self.ensure_open()?;
        let (mut found, places): (Vec<_>, Vec<_>) = {
            let live = self.live();
            ids.iter().map(|id| (live.pending.get(id).cloned(), live.place(*id))).unzip()
        };
        let path = self.folder.as_ref().map(|folder| folder.join("segments.jsonl"));
        if let Some(file) = path.and_then(|path| disk::open(path).ok()) {
            for ((id, found), place) in ids.iter().zip(&mut found).zip(&places) {
                if found.is_none() {
                    *found = place.and_then(|place| read(&file, place)).filter(|s| s.id == *id);
                }
            }
        }
        self.ask(ids, &mut found)?;
        Ok(found)
    }

    /// Asks the source for segments that exist but were not found.
    fn ask(&self, ids: &[SegmentId], found: &mut [Option<Segment>]) -> Result<()> {
        let missing: Vec<usize> = {
            let live = self.live();
            let is_there = |at: &usize| live.row(ids[*at]).is_some();
            (0..ids.len()).filter(|at| found[*at].is_none()).filter(is_there).collect()
        };
        if missing.is_empty() {
            return Ok(());
        }
        let mut source = self.opened()?;
        let wanted: Vec<_> = missing.iter().map(|at| ids[*at]).collect();
        let damaged = source.unreadable();
        for (at, segment) in missing.iter().zip(source.get(&wanted)?) {
            found[*at] = segment;
        }
        self.warn_of_damage(&**source, damaged);
        let mut live = self.live_mut();
        for id in missing.iter().filter(|at| found[**at].is_none()).map(|at| ids[*at]) {
            // Removed, or not a segment. A new one may have no place yet.
            if !live.pending.contains_key(&id) {
                live.remove(id);
            }
        }
        if self.folder.is_some() && missing.iter().any(|at| found[*at].is_some()) {
            // The file was rewritten, so all places have changed.
            let all = live.index.ids().to_vec();
            live.locate(all, |id| source.place(id));
        }
        Ok(())
    }
}

/// Reads the segment whose line is at this place, if there is one.
fn read(file: &File, (offset, length): (u64, u32)) -> Option<Segment> {
    let line = disk::read_at(file, offset, u64::from(length)).ok()?;
    serde_json::from_slice(&line).ok()
}

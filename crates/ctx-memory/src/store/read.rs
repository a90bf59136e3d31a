//! Reading segments while others write.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use ctx_core::Result;

use super::{Inner, Memory};
use crate::{Segment, SegmentId};

/// So many segments are in memory at once, while all of them are looked at.
const AT_ONCE: usize = 256;

impl Memory {
    /// The segments that are wanted, in the order in which they came. All of them are read for it.
    ///
    /// # Errors
    ///
    /// Where the archive cannot be read.
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
    /// Segments by their ids. Whoever writes to the archive, or waits for another process that does,
    /// is not waited for: the file is read where the segments were last. Only where they are there
    /// no more, because the file was written anew, the source is asked.
    pub(super) fn get(&self, ids: &[SegmentId]) -> Result<Vec<Option<Segment>>> {
        self.ensure_open()?;
        let (mut found, places): (Vec<_>, Vec<_>) = {
            let live = self.live();
            ids.iter().map(|id| (live.pending.get(id).cloned(), live.place(*id))).unzip()
        };
        let path = self.folder.as_ref().map(|folder| folder.join("segments.jsonl"));
        if let Some(mut file) = path.and_then(|path| crate::disk::open(path).ok()) {
            for ((id, found), place) in ids.iter().zip(&mut found).zip(&places) {
                if found.is_none() {
                    *found = place.and_then(|place| read(&mut file, place)).filter(|s| s.id == *id);
                }
            }
        }
        self.ask(ids, &mut found)?;
        Ok(found)
    }

    /// Asks the source for those that were not found, though they are there.
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
        self.warn_of_damage(&source, damaged);
        let mut live = self.live_mut();
        for id in missing.iter().filter(|at| found[**at].is_none()).map(|at| ids[*at]) {
            // Gone, or no segment after all. One that was just added may have no place yet.
            if !live.pending.contains_key(&id) {
                live.remove(id);
            }
        }
        if self.folder.is_some() && missing.iter().any(|at| found[*at].is_some()) {
            // The file was written anew: all of them are elsewhere.
            let all = live.index.ids().to_vec();
            live.locate(all, |id| source.place(id));
        }
        Ok(())
    }
}

/// The segment whose line is at a place, if there is one.
fn read(file: &mut File, (offset, length): (u64, u32)) -> Option<Segment> {
    file.seek(SeekFrom::Start(offset)).ok()?;
    let mut line = Vec::new();
    file.take(u64::from(length)).read_to_end(&mut line).ok()?;
    serde_json::from_slice(&line).ok()
}

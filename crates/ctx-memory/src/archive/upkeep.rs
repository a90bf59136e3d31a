//! Keeping the archive in order: its end, its size, its age.

use std::cmp::Reverse;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;

use ctx_core::{Result, Timestamp};

use super::file::Mark;
use super::row::Head;
use super::segments::Segments;
use crate::SegmentId;
use crate::disk::FileLock;

pub(super) const DAY: i64 = 86_400_000;

impl Segments {
    /// Takes the lock, reads what others wrote, and puts the end of the file in order.
    pub(super) fn begin(&mut self) -> Result<FileLock> {
        let lock = self.file.lock()?;
        self.file.sweep(&lock);
        self.catch_up()?;
        let Some(mut file) = self.file.open()? else { return Ok(lock) };
        let failed = |e| self.file.failed("cannot read the archive", e);
        let mut rest = Vec::new();
        file.seek(SeekFrom::Start(self.mark.read_to)).map_err(failed)?;
        file.read_to_end(&mut rest).map_err(failed)?;
        if rest.is_empty() {
            return Ok(lock);
        }
        // Under the lock nobody is writing: this is what a crash left.
        let at = self.mark.read_to;
        if serde_json::from_slice::<Head<'_>>(&rest).is_ok() {
            let end = at + rest.len() as u64;
            let (end, file) = self.file.append(&lock, end, b"\n", b"")?;
            self.take_line(&rest, at);
            self.mark = self.file.mark(&file, end, self.file.generation())?;
        } else {
            self.damage.torn.push(self.file.keep_aside(&lock, at)?);
        }
        Ok(lock)
    }

    /// Lets go of what is too old or too much: what came first, and of what came at once, what was said
    /// first. The lines stay until the file is written anew.
    pub(super) fn evict(&mut self, now: Timestamp) {
        let days = i64::from(self.limits.eviction_days);
        let oldest = Timestamp(now.0.saturating_sub(days.saturating_mul(DAY)));
        while let Some(Reverse((since, _, place))) = self.ages.peek().copied() {
            let too_old = days > 0 && since < oldest;
            if !too_old && self.places.len() <= self.limits.max_segments {
                break;
            }
            self.ages.pop();
            if let Some(row) = self.rows.get(place as usize).filter(|row| row.live) {
                self.remove(row.id);
            }
        }
    }

    pub(super) fn remove(&mut self, id: SegmentId) {
        let Some(place) = self.places.remove(&id) else { return };
        if let Some(row) = self.rows.get_mut(place as usize) {
            row.live = false;
        }
        self.dead += 1;
        self.changes.removed.push(id);
    }

    /// Writes the file anew with the live segments alone.
    pub(super) fn write_anew(&mut self, lock: &FileLock, keep_unreadable: bool) -> Result<()> {
        let Some(file) = self.file.open()? else { return Ok(()) };
        let mut parts: Vec<Range<u64>> = Vec::new();
        for row in self.rows.iter().filter(|row| row.live) {
            let end = row.offset + u64::from(row.length) + 1;
            match parts.last_mut() {
                Some(last) if last.end == row.offset => last.end = end,
                _ => parts.push(row.offset..end),
            }
        }
        if keep_unreadable && !self.unreadable.is_empty() {
            self.file.keep_unreadable(lock, &file, &self.unreadable)?;
        }
        let generation = self.file.keep_only(lock, &file, &parts)?;
        self.rows.retain(|row| row.live);
        self.ages.clear();
        let mut at = 0;
        for (place, row) in self.rows.iter_mut().enumerate() {
            row.offset = at;
            at += u64::from(row.length) + 1;
            // There are no more rows than there were, and those had places.
            let place = u32::try_from(place).unwrap_or(u32::MAX);
            self.places.insert(row.id, place);
            self.ages.push(Reverse((row.since, row.timestamp, place)));
        }
        self.dead = 0;
        self.unreadable.clear();
        self.mark = Mark::default();
        if let Some(file) = self.file.open()? {
            self.mark = self.file.mark(&file, at, generation)?;
        }
        Ok(())
    }
}

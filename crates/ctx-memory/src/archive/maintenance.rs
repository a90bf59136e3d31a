//! Maintains the archive: repairs the end of the file and evicts by number and age.

use std::cmp::Reverse;
use std::ops::Range;

use ctx_core::{Result, Timestamp};

use super::file::ReadPosition;
use super::row::{RowHeader, id_in};
use super::segments::Segments;
use crate::disk::{self, FileLock};
use ctx_search::SegmentId;

pub(super) const DAY: i64 = 86_400_000;

impl Segments {
    /// Takes the lock, reads the lines that others wrote, and repairs the end of the file.
    pub(super) fn begin(&mut self) -> Result<FileLock> {
        let lock = self.file.lock()?;
        self.file.sweep(&lock);
        self.catch_up()?;
        let Some(file) = self.file.open()? else { return Ok(lock) };
        let rest = disk::read_at(&file, self.mark.read_to, u64::MAX)
            .map_err(|e| self.file.failed("cannot read", e))?;
        if rest.is_empty() {
            return Ok(lock);
        }
        // No process writes while the lock is held, so this is the remainder of a crash.
        let at = self.mark.read_to;
        if serde_json::from_slice::<RowHeader<'_>>(&rest).is_ok() {
            let end = at + rest.len() as u64;
            let (end, file) = self.file.append(&lock, end, b"\n", b"")?;
            self.take_line(&rest, at);
            self.mark = self.file.mark(&file, end, self.file.generation())?;
        } else {
            self.damage.torn.push(self.file.keep_aside(&lock, at)?);
        }
        Ok(lock)
    }

    /// Evicts segments that are too old or too many, in the order of archiving, then of message
    /// time. Their lines stay until the file is rewritten.
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
        let Some(place) = self.places.remove(&id, id_in(&self.rows)) else { return };
        if let Some(row) = self.rows.get_mut(place as usize) {
            row.live = false;
        }
        self.dead += 1;
        self.changes.removed.push(id);
    }

    /// Rewrites the file with the live segments only.
    pub(super) fn rewrite(&mut self, lock: &FileLock, keep_unreadable: bool) -> Result<()> {
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
        self.drop_kept()?;
        let generation = self.file.keep_only(lock, &file, &parts)?;
        self.rows.retain(|row| row.live);
        self.ages.clear();
        self.places.clear();
        let mut at = 0;
        for (place, row) in self.rows.iter_mut().enumerate() {
            row.offset = at;
            at += u64::from(row.length) + 1;
            // At most as many rows as before, and those had indices.
            let place = u32::try_from(place).unwrap_or(u32::MAX);
            self.ages.push(Reverse((row.since, row.timestamp, place)));
        }
        for (place, _) in (0..).zip(&self.rows) {
            self.places.insert(place, id_in(&self.rows));
        }
        self.dead = 0;
        self.unreadable.clear();
        self.mark = ReadPosition::default();
        if let Some(file) = self.file.open()? {
            self.mark = self.file.mark(&file, at, generation)?;
        }
        Ok(())
    }
}

//! Reads the archive: continues where it stopped, rescans a replaced file, and reads texts.

use std::fs::File;
use std::io::{Seek, SeekFrom};

use std::cmp::Reverse;

use ctx_core::Result;

use super::file::ReadPosition;
use super::lines::LineReader;
use super::row::{RowHeader, id_in};
use super::segments::{Damage, Segments};
use crate::disk;
use ctx_search::{Segment, SegmentId};

impl Segments {
    /// Reads the lines appended since the last read, or all lines if the file was replaced.
    pub(super) fn catch_up(&mut self) -> Result<()> {
        let generation = self.file.generation();
        let Some(file) = self.file.open()? else {
            return if self.mark == ReadPosition::default() { Ok(()) } else { self.rescan() };
        };
        if self.mark != ReadPosition::default() && !self.file.is_same(&file, &self.mark)? {
            return self.rescan();
        }
        self.read_on(&file, generation)
    }

    /// Drops all rows, reads the file from its beginning, and records the differences.
    pub(super) fn rescan(&mut self) -> Result<()> {
        let (before, old) = (std::mem::take(&mut self.places), std::mem::take(&mut self.rows));
        let mut changes = std::mem::take(&mut self.changes);
        self.kept = 0;
        self.ages.clear();
        self.unreadable.clear();
        self.dead = 0;
        self.mark = ReadPosition::default();
        self.damage = Damage { torn: std::mem::take(&mut self.damage.torn), ..Damage::default() };
        self.forgotten.refresh()?;
        let generation = self.file.generation();
        if let Some(file) = self.file.open()? {
            self.read_on(&file, generation)?;
        }
        let added = std::mem::take(&mut self.changes.added);
        changes.added.extend(added.into_iter().filter(|id| before.get(id, id_in(&old)).is_none()));
        let gone = old.iter().filter(|row| row.live && !self.has(row.id));
        changes.removed.extend(gone.map(|row| row.id));
        self.changes = changes;
        Ok(())
    }

    pub(super) fn read_on(&mut self, file: &File, generation: u64) -> Result<()> {
        let mut at = self.mark.read_to;
        let mut reader = file;
        let seek = reader.seek(SeekFrom::Start(at));
        seek.map_err(|e| self.file.failed("cannot read", e))?;
        let mut lines = LineReader::new(file, at);
        loop {
            let line = lines.next().map_err(|e| self.file.failed("cannot read", e))?;
            let Some(line) = line.filter(|line| line.terminated) else { break };
            at = line.offset + line.bytes.len() as u64 + 1;
            self.take_line(line.bytes, line.offset);
        }
        if at != self.mark.read_to || generation != self.file.generation() {
            self.mark = self.file.mark(file, at, generation)?;
        }
        Ok(())
    }

    pub(super) fn take_line(&mut self, line: &[u8], offset: u64) {
        if line.trim_ascii().is_empty() {
            return;
        }
        let head = serde_json::from_slice::<RowHeader<'_>>(line).ok();
        let row = head.and_then(|head| self.names.row(&head, offset, line.len()));
        let row = row.filter(|row| !self.spoiled.contains(&row.id) || is_segment(line));
        let place = u32::try_from(self.rows.len()).ok();
        let (Some(row), Some(place)) = (row, place) else {
            self.leave_out(offset, line.len() as u64);
            return;
        };
        if self.has(row.id) {
            self.damage.duplicates += 1;
            self.dead += 1;
            return;
        }
        if self.spoiled.contains(&row.id) {
            // A later, readable line holds the same segment.
            self.changes.removed.retain(|id| *id != row.id);
        }
        self.ages.push(Reverse((row.since, row.timestamp, place)));
        self.changes.added.push(row.id);
        self.rows.push(row);
        self.places.insert(place, id_in(&self.rows));
    }

    /// Records an unreadable line.
    fn leave_out(&mut self, offset: u64, length: u64) {
        self.damage.unreadable += 1;
        let end = offset + length + 1;
        match self.unreadable.last_mut() {
            Some(last) if last.end == offset => last.end = end,
            _ => self.unreadable.push(offset..end),
        }
    }

    pub(super) fn read_all(&self, ids: &[SegmentId]) -> Result<Vec<Option<Segment>>> {
        let mut found: Vec<Option<Segment>> = ids.iter().map(|_| None).collect();
        let Some(file) = self.file.open()? else { return Ok(found) };
        for (id, found) in ids.iter().zip(&mut found) {
            let Some(row) = self.row(*id) else { continue };
            let line = disk::read_at(&file, row.offset, u64::from(row.length))
                .map_err(|e| self.file.failed("cannot read", e))?;
            *found = serde_json::from_slice::<Segment>(&line).ok().filter(|s| s.id == *id);
        }
        Ok(found)
    }
}

fn is_segment(line: &[u8]) -> bool {
    serde_json::from_slice::<Segment>(line).is_ok()
}

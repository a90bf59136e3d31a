//! `segments.jsonl.rows`: the rows of an archive, so that opening it does not read every line.
//!
//! ```text
//! magic | CRC-32 of the rest u32 | length of the header u32 | header, JSON | rows      little endian
//! ```
//!
//! The file is derived. If it is missing, damaged, or of an archive that was rewritten since, the
//! archive is read from its beginning.

use std::cmp::Reverse;
use std::io::{self, BufReader, Read, Write};
use std::path::PathBuf;

use ctx_core::Result;
use serde::{Deserialize, Serialize};

use super::file::ReadPosition;
use super::row::{Names, ROW, RowEntry, id_in};
use super::segments::Segments;
use crate::disk;

const MAGIC: [u8; 8] = *b"CTXROWS1";

/// The rows are kept when there are this many that are not, and they are an eighth of all.
const UNKEPT: usize = 8_192;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header {
    position: ReadPosition,
    rows: usize,
    /// The sessions, roles and speakers, by number.
    names: [Vec<String>; 3],
    /// Where unreadable lines begin and end.
    unreadable: Vec<(u64, u64)>,
    unreadable_lines: usize,
    duplicates: usize,
}

impl Segments {
    fn kept_path(&self) -> PathBuf {
        disk::beside(&self.file.path, ".rows")
    }

    /// Deletes the kept rows: they name sessions and speakers that may be forgotten.
    pub(super) fn drop_kept(&mut self) -> Result<()> {
        self.kept = 0;
        disk::remove(&self.kept_path(), "cannot delete the rows of the archive").map(drop)
    }

    /// Takes the kept rows. To be called before anything is read.
    pub(super) fn take_kept(&mut self) {
        // Without it, the archive itself is read.
        let Ok(Some((header, rows))) = self.read_kept() else { return };
        self.mark = header.position;
        self.names = Names::of(header.names);
        self.unreadable = header.unreadable.into_iter().map(|(start, end)| start..end).collect();
        self.damage.unreadable = header.unreadable_lines;
        self.damage.duplicates = header.duplicates;
        self.dead = header.duplicates;
        self.kept = rows.len();
        self.places.reserve(rows.len(), id_in(&rows));
        for (place, _) in (0..).zip(&rows) {
            self.places.insert(place, id_in(&rows));
        }
        let age = |(row, place): (&RowEntry, u32)| Reverse((row.since, row.timestamp, place));
        self.ages = rows.iter().zip(0..).map(age).collect();
        self.rows = rows;
    }

    fn read_kept(&self) -> io::Result<Option<(Header, Vec<RowEntry>)>> {
        let mut file = BufReader::with_capacity(256 << 10, disk::open(self.kept_path())?);
        let (mut magic, mut expected, mut length) = ([0; 8], [0; 4], [0; 4]);
        for bytes in [&mut magic[..], &mut expected, &mut length] {
            file.read_exact(bytes)?;
        }
        if magic != MAGIC {
            return Ok(None);
        }
        let mut header = Vec::new();
        (&mut file).take(u32::from_le_bytes(length).into()).read_to_end(&mut header)?;
        let mut sum = crc32fast::Hasher::new();
        sum.update(&header);
        let header: Header = serde_json::from_slice(&header)?;
        let mut rows = Vec::with_capacity(header.rows.min(1 << 20));
        let mut bytes = [0; ROW];
        for _ in 0..header.rows {
            file.read_exact(&mut bytes)?;
            sum.update(&bytes);
            rows.push(RowEntry::read(&bytes));
        }
        let is_sound = sum.finalize() == u32::from_le_bytes(expected);
        Ok(is_sound.then_some((header, rows)))
    }

    /// Keeps the rows for the next start, if enough of them are not kept. To be called right after
    /// opening: they are those of the lines that were read, evicted or not.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub(crate) fn keep_rows(&mut self) -> Result<()> {
        if self.rows.len() - self.kept < UNKEPT.max(self.rows.len() / 8) {
            return Ok(());
        }
        let _lock = self.file.lock()?;
        let header = Header {
            position: self.mark.clone(),
            rows: self.rows.len(),
            names: self.names.lists(),
            unreadable: self.unreadable.iter().map(|lines| (lines.start, lines.end)).collect(),
            unreadable_lines: self.damage.unreadable,
            duplicates: self.damage.duplicates,
        };
        let path = self.kept_path();
        let header = serde_json::to_vec(&header)
            .map_err(|e| disk::io_error("cannot keep the rows of the archive", &path, e.into()))?;
        let mut sum = crc32fast::Hasher::new();
        sum.update(&header);
        self.rows.iter().for_each(|row| sum.update(&row.written()));
        disk::replace(&path, |out| {
            out.write_all(&MAGIC)?;
            out.write_all(&sum.finalize().to_le_bytes())?;
            out.write_all(&u32::try_from(header.len()).unwrap_or(u32::MAX).to_le_bytes())?;
            out.write_all(&header)?;
            self.rows.iter().try_for_each(|row| out.write_all(&row.written()))
        })?;
        self.kept = self.rows.len();
        Ok(())
    }
}

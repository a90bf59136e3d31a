//! Writes `vectors.bin`, concurrently with other processes.
//!
//! Rows are only appended, and removed only by rewriting the file. So if the last row that this
//! process knows is still in its place, the rows after it were added by others.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::time::Duration;

use ctx_core::Result;

use super::layout::{HEADER, header, read_header, read_row, row, write_row};
use super::{Embedding, VectorFile};
use crate::SegmentId;
use crate::disk::{self, FileLock};
use crate::near::KeptVectors;

const PATIENCE: Duration = Duration::from_secs(10);

impl VectorFile {
    /// Writes added vectors after those that others added. A file that is invalid, or that another
    /// process rewrote, is rewritten with its valid rows.
    ///
    /// # Errors
    ///
    /// If the file cannot be written; the added vectors stay in memory and are written next time.
    pub fn commit(&mut self) -> Result<()> {
        if self.written == self.ids.len() && self.length.is_some() {
            return Ok(());
        }
        let lock = self.lock()?;
        if !self.follow()? {
            self.reread()?;
        }
        match self.length {
            Some(_) if self.written == self.ids.len() => Ok(()),
            Some(length) => self.append(&lock, length),
            // Another model's file there is only replaced once there are vectors to write.
            None if self.ids.is_empty() => Ok(()),
            None => self.rewrite(&lock),
        }
    }

    /// Keeps only the vectors of these segments, in memory and on the disk.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn retain(&mut self, mut keep: impl FnMut(SegmentId) -> bool) -> Result<()> {
        let lock = self.lock()?;
        self.reread()?;
        if self.length.is_some() && self.ids.iter().all(|id| keep(*id)) {
            return match self.length {
                Some(length) if self.written < self.ids.len() => self.append(&lock, length),
                _ => Ok(()),
            };
        }
        let (ids, values) = (std::mem::take(&mut self.ids), std::mem::take(&mut self.values));
        self.places.clear();
        for (id, vector) in ids.iter().zip(values.chunks_exact(self.embedding.dimensions.max(1))) {
            if keep(*id) {
                self.place(*id, vector);
            }
        }
        self.length = None;
        self.written = 0;
        self.rewrite(&lock)
    }

    fn lock(&self) -> Result<FileLock> {
        disk::create_private_dir(disk::parent(&self.path))?;
        FileLock::with_timeout(&self.path, PATIENCE)
    }

    /// Reads the rows that others added. Returns false if anything else in the file has changed.
    fn follow(&mut self) -> Result<bool> {
        if self.length.is_none() {
            return Ok(false);
        }
        let failed = |e| disk::io_error("cannot read the vectors", &self.path, e);
        let Some((count, rows)) = self.added().map_err(failed)? else { return Ok(false) };
        let dimensions = self.embedding.dimensions;
        let mut values = Vec::with_capacity(count * dimensions);
        let ids = rows.chunks_exact(row(dimensions)).map(|bytes| read_row(bytes, &mut values));
        let Some(ids) = ids.collect::<Option<Vec<SegmentId>>>() else { return Ok(false) };
        let new = self.unwritten();
        for (id, vector) in ids.iter().zip(values.chunks_exact(dimensions.max(1))) {
            self.place(*id, vector);
        }
        let is_sound = self.ids.len() == self.written + ids.len();
        (self.written, self.length) = (self.ids.len(), Some(self.bytes()));
        self.place_all(&new);
        // A repeated row was not added by an append.
        Ok(is_sound)
    }

    /// Returns the number of rows after those that this process knows, and their bytes; `None` if
    /// the file is another.
    fn added(&self) -> io::Result<Option<(usize, Vec<u8>)>> {
        let file = match disk::open(&self.path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let length = file.metadata()?.len();
        let head = disk::read_at(&file, 0, HEADER as u64)?;
        let Ok((dimensions, count)) = read_header(&head) else { return Ok(None) };
        let size = row(dimensions) as u64;
        let is_whole = length == HEADER as u64 + u64::from(count) * size;
        let is_ours = dimensions == self.embedding.dimensions
            && Embedding::beside(&self.path).as_ref() == Some(&self.embedding);
        let Some(added) = (count as usize).checked_sub(self.written) else { return Ok(None) };
        if !is_whole || !is_ours {
            return Ok(None);
        }
        let known = HEADER as u64 + self.written as u64 * size;
        if let Some(last) = self.written.checked_sub(1).and_then(|last| self.ids.get(last))
            && disk::read_at(&file, known - size, 16)? != last.0.as_bytes()
        {
            return Ok(None);
        }
        let rows = disk::read_at(&file, known, length - known)?;
        Ok((rows.len() as u64 == length - known).then_some((added, rows)))
    }

    /// The length of a file with all known rows, written or not.
    fn bytes(&self) -> u64 {
        (HEADER + self.ids.len() * row(self.embedding.dimensions)) as u64
    }

    /// Writes the rows first, then the count: a reader between the two writes, or after a crash
    /// between them, sees the old rows.
    fn append(&mut self, _lock: &FileLock, length: u64) -> Result<()> {
        let mut bytes = Vec::new();
        for (id, vector) in self.iter().skip(self.written - self.held_from) {
            write_row(&mut bytes, id, vector);
        }
        let count = u32::try_from(self.ids.len()).unwrap_or(u32::MAX);
        let head = header(self.embedding.dimensions, count);
        let write = || {
            let mut file = File::options().write(true).open(&self.path)?;
            file.seek(SeekFrom::Start(length))?;
            file.write_all(&bytes)?;
            file.seek(SeekFrom::Start(0))?;
            file.write_all(&head)
        };
        if let Err(e) = write() {
            self.length = None;
            return Err(disk::io_error("cannot write the vectors", &self.path, e));
        }
        self.length = Some(length + bytes.len() as u64);
        self.written = self.ids.len();
        Ok(())
    }

    fn rewrite(&mut self, _lock: &FileLock) -> Result<()> {
        // The embedder is written first: after a crash in between, the vectors may be taken for
        // foreign, but never for another embedder's.
        let count = u32::try_from(self.ids.len()).unwrap_or(u32::MAX);
        // Vectors that are removed here are not to stay there.
        disk::remove(&KeptVectors::beside(&self.path), "cannot delete the vectors")?;
        if Embedding::beside(&self.path).as_ref() != Some(&self.embedding) {
            disk::remove(&self.path, "cannot replace the vectors")?;
            self.embedding.write_beside(&self.path)?;
        }
        disk::replace(&self.path, |out| {
            out.write_all(&header(self.embedding.dimensions, count))?;
            let mut bytes = Vec::new();
            for (id, vector) in self.iter() {
                bytes.clear();
                write_row(&mut bytes, id, vector);
                out.write_all(&bytes)?;
            }
            Ok(())
        })?;
        self.length = Some(self.bytes());
        self.written = self.ids.len();
        Ok(())
    }
}

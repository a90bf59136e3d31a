//! The ids of forgotten segments, so that the next transcript that contains them does not restore
//! them.

use std::collections::HashSet;
use std::io::Read;
use std::path::Path;

use ctx_core::Result;
use foldhash::fast::RandomState;
use uuid::Uuid;

use super::file::LinesFile;
use crate::disk::{self, FileLock};
use ctx_search::SegmentId;

/// The ids of forgotten segments, one per line. An id is a hash; the file contains no text.
#[derive(Debug)]
pub(super) struct Forgotten {
    file: LinesFile,
    ids: HashSet<SegmentId, RandomState>,
    /// The length of the file when it was read.
    length: u64,
}

impl Forgotten {
    /// Returns the list kept beside an archive, without reading it.
    pub(super) fn beside(archive: &Path) -> Self {
        let path = disk::beside(archive, ".forgotten");
        Self {
            file: LinesFile::new(path, "the list of what is forgotten"),
            ids: HashSet::default(),
            length: 0,
        }
    }

    pub(super) fn contains(&self, id: SegmentId) -> bool {
        self.ids.contains(&id)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = SegmentId> {
        self.ids.iter().copied()
    }

    /// Reads ids that other processes added. A line that is not an id was never acknowledged.
    pub(super) fn refresh(&mut self) -> Result<()> {
        let Some(mut file) = self.file.open()? else {
            self.ids.clear();
            self.length = 0;
            return Ok(());
        };
        let failed = |e| self.file.failed("cannot read", e);
        if file.metadata().map_err(failed)?.len() == self.length {
            return Ok(());
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let text = String::from_utf8_lossy(&bytes);
        self.ids =
            text.lines().filter_map(|line| Uuid::parse_str(line).ok().map(SegmentId)).collect();
        self.length = bytes.len() as u64;
        Ok(())
    }

    /// Adds ids and flushes them to disk.
    pub(super) fn add(&mut self, lock: &FileLock, ids: &HashSet<SegmentId>) -> Result<()> {
        self.refresh()?;
        let mut new: Vec<SegmentId> =
            ids.iter().filter(|id| !self.ids.contains(*id)).copied().collect();
        if new.is_empty() {
            return Ok(());
        }
        new.sort_unstable();
        // A line torn by a crash is terminated first, so that it does not merge with a new id.
        let ends_line = self.file.open()?.map_or(Ok(true), |file| disk::ends_line(&file));
        let is_torn = !ends_line.map_err(|e| self.file.failed("cannot read", e))?;
        let bridge: &[u8] = if is_torn { b"\n" } else { b"" };
        let lines: String = new.iter().map(|id| format!("{id}\n")).collect();
        self.file.append(lock, self.length, bridge, lines.as_bytes())?;
        self.refresh()
    }
}

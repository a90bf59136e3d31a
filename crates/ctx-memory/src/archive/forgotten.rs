//! The ids of forgotten segments, so that the next transcript that contains them does not restore
//! them.

use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use ctx_core::Result;
use foldhash::fast::RandomState;
use uuid::Uuid;

use crate::disk::{self, FileLock};
use ctx_search::SegmentId;

/// The ids of forgotten segments, one per line. An id is a hash; the file contains no text.
#[derive(Debug)]
pub(super) struct Forgotten {
    path: PathBuf,
    ids: HashSet<SegmentId, RandomState>,
    /// The length of the file when it was read.
    length: u64,
}

impl Forgotten {
    /// Returns the list kept beside an archive, without reading it.
    pub(super) fn beside(archive: &Path) -> Self {
        let path = disk::beside(archive, ".forgotten");
        Self { path, ids: HashSet::default(), length: 0 }
    }

    pub(super) fn contains(&self, id: SegmentId) -> bool {
        self.ids.contains(&id)
    }

    /// Reads ids that other processes added. A line that is not an id was never acknowledged.
    pub(super) fn refresh(&mut self) -> Result<()> {
        let failed = |e| disk::io_error("cannot read what was forgotten", &self.path, e);
        let mut file = match disk::open(&self.path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                self.ids.clear();
                self.length = 0;
                return Ok(());
            }
            Err(e) => return Err(failed(e)),
        };
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
    pub(super) fn add(&mut self, _lock: &FileLock, ids: &HashSet<SegmentId>) -> Result<()> {
        self.refresh()?;
        let mut new: Vec<SegmentId> =
            ids.iter().filter(|id| !self.ids.contains(*id)).copied().collect();
        if new.is_empty() {
            return Ok(());
        }
        new.sort_unstable();
        let is_new = !self.path.exists();
        let write = || {
            let mut file = disk::private().read(true).append(true).create(true).open(&self.path)?;
            // A line torn by a crash is terminated first, so that it does not merge with a new id.
            let mut text = if disk::ends_line(&file)? { String::new() } else { "\n".to_owned() };
            new.iter().for_each(|id| text.push_str(&format!("{id}\n")));
            file.write_all(text.as_bytes())?;
            file.sync_data()
        };
        write().map_err(|e| disk::io_error("cannot note what is forgotten", &self.path, e))?;
        if is_new {
            disk::sync_dir(disk::parent(&self.path))?;
        }
        self.refresh()
    }
}

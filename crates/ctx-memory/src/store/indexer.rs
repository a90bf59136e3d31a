//! Writes the index on disk in batches.

use ctx_core::text::Slice;
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ctx_core::{Error, ErrorKind, Result};

use super::Inner;
use super::live::Live;
use super::load::Shared;
use ctx_search::index::{Batch, DiskIndex, Piece, WriteOutcome, index_folder, key_of};
use ctx_search::search::lexical_head;
use ctx_search::{IdTable, SegmentId};

/// The maximum number of segments per write; each batch can be searched after its commit.
const CHUNK: usize = 50_000;

/// A batch of more segments than this gets a larger memory budget.
const LARGE: usize = 5_000;

/// The index on disk and its state.
#[derive(Default)]
pub(super) struct Indexer {
    folder: Option<PathBuf>,
    disk: Option<DiskIndex>,
    stored: Option<Shared>,
    /// The keys of the segments, by row, and their rows, as last numbered.
    keys: Vec<u64>,
    rows: IdTable,
    /// Whether a segment was removed and added again, so that two rows have its key.
    has_repeated: bool,
    numbering: u64,
}

/// How much to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteScope {
    /// Everything.
    All,
    /// Only batches large enough for a commit.
    Batches,
}

/// A batch to write.
struct IndexBatch {
    ids: Vec<SegmentId>,
    /// The number of frozen parts in it.
    frozen: usize,
    /// The number of its rows whose words are in no index.
    wordless: usize,
    numbering: u64,
}

impl Indexer {
    pub(super) fn new(folder: Option<PathBuf>) -> Self {
        Self { folder, ..Self::default() }
    }

    /// Opens the index for newly numbered rows. Returns `None` and warns if no usable index exists.
    pub(super) fn open(&mut self, inner: &Inner, live: &Live) -> Option<Shared> {
        let folder = self.folder.clone()?;
        self.number(live);
        self.stored = None;
        if !self.has_place(inner) {
            self.disk = None;
            return None;
        }
        let read_only = inner.settings.read_only;
        let there = if read_only { folder.join("meta.json") } else { folder.clone() };
        if self.disk.is_none() && !there.exists() {
            // The first batch creates it.
            return None;
        }
        let mut opened = self.snapshot(&folder);
        if let Err(error) = &opened
            && read_only
        {
            inner.warn(format!("the lexical index is not used: {error}"));
            self.disk = None;
            opened = Ok(None);
        } else if let Err(error) = &opened {
            inner.warn(format!("the lexical index is rebuilt: {error}"));
            self.disk = None;
            if let Err(error) = index_folder::clear(&folder) {
                inner.warn(format!("the lexical index is missing: {error}"));
            }
            opened = Ok(None);
        }
        self.stored = opened.ok().flatten();
        self.stored.clone()
    }

    fn snapshot(&mut self, folder: &Path) -> Result<Option<Shared>> {
        if self.disk.is_none() {
            self.disk = Some(DiskIndex::open(folder)?);
        }
        let (keys, rows, last) = (&self.keys, &self.rows, Cell::new(0_u32));
        // Pieces are mostly in the order of the rows.
        let is_near = |row: &u32| !self.has_repeated && keys.get(*row as usize).is_some();
        let row_of = |key: u64| {
            let near = [last.get(), last.get().saturating_add(1)].into_iter().filter(is_near);
            let mut near = near.filter(|row| keys[*row as usize] == key);
            let row = near.next().or_else(|| rows.get(&key, |row| keys[row as usize]))?;
            last.set(row);
            Some(row)
        };
        let read = |disk: &DiskIndex| disk.snapshot(row_of).map(Arc::new);
        self.disk.as_ref().map(read).transpose()
    }

    /// Records the rows of new segments.
    fn number(&mut self, live: &Live) {
        if self.numbering != live.numbering {
            self.numbering = live.numbering;
            self.rows.clear();
            self.keys.clear();
            self.has_repeated = false;
        }
        let known = self.keys.len();
        self.keys.extend(live.index.ids().slice(known..).iter().map(|id| key_of(*id)));
        let keys = &self.keys;
        let key_at = |row: u32| keys[row as usize];
        self.rows.reserve(keys.len() - known, key_at);
        for (row, key) in (known as u32..).zip(keys.slice(known..)) {
            if !self.rows.insert(row, key_at) {
                // The older row was removed.
                self.rows.remove(key, key_at);
                self.rows.insert(row, key_at);
                self.has_repeated = true;
            }
        }
    }

    /// Deletes the index, including its terms.
    pub(super) fn delete(&mut self) -> Result<()> {
        (self.disk, self.stored) = (None, None);
        self.folder.as_deref().map_or(Ok(()), index_folder::clear)
    }

    /// Whether an index can be created in its folder. Foreign files there are reported and kept;
    /// words then stay in memory.
    pub(super) fn has_place(&self, inner: &Inner) -> bool {
        let Some(folder) = &self.folder else { return false };
        let Err(error) = index_folder::check(folder) else { return true };
        inner.warn(format!("the lexical index is kept in memory: {}", error.told()));
        false
    }

    /// Builds the missing parts: the lexical index and hash vectors.
    pub(super) fn run(&mut self, inner: &Inner, much: WriteScope) -> Result<()> {
        let is_written = self.folder.is_some() && !inner.settings.read_only;
        let written = match is_written && self.has_place(inner) {
            true => self.write_words(inner, much),
            false => Ok(()),
        };
        // Vectors do not wait for an index that cannot be written.
        inner.hash_missing()?;
        written
    }

    /// Writes everything that is not in the index. A missing or damaged index is rebuilt. If the
    /// index cannot be written, this is reported and the words stay in memory.
    fn write_words(&mut self, inner: &Inner, much: WriteScope) -> Result<()> {
        let damaged = self.stored.as_ref().is_some_and(|stored| stored.is_damaged());
        let gone = self.disk.is_some() && !self.is_there();
        if damaged || gone {
            let why = if gone { "it was deleted" } else { "it cannot be read" };
            inner.warn(format!("the lexical index is rebuilt: {why}"));
            return self.rebuild(inner);
        }
        if self.is_stale(inner) {
            // Unknown documents may have been added by another process.
            self.reload(inner)?;
            if self.is_stale(inner) {
                self.rebuild(inner)?;
                self.reload(inner)?;
            }
        }
        // Otherwise each message added meanwhile would be a separate commit.
        while (much == WriteScope::All || inner.has_batch())
            && let Some(work) = self.next(inner)
        {
            match self.write(inner, &work) {
                Ok(WriteOutcome::Committed) => self.publish(inner, &work)?,
                // Another process writes. New words stay in memory until next time.
                Ok(WriteOutcome::Busy) => break,
                Ok(WriteOutcome::Stale) => self.reload(inner)?,
                // The disk may be full. New words stay in memory until next time.
                Err(error) if error.kind() == ErrorKind::Io && self.is_there() => {
                    inner.warn(format!("the lexical index cannot be written: {error}"));
                    break;
                }
                Err(error) => {
                    inner.warn(format!("the lexical index is rebuilt: {error}"));
                    return self.rebuild(inner);
                }
            }
        }
        Ok(())
    }

    fn is_there(&self) -> bool {
        self.disk.as_ref().is_some_and(DiskIndex::is_there)
    }

    /// Whether a large part of the index belongs to removed segments.
    fn is_stale(&self, inner: &Inner) -> bool {
        let (all, mut gone) = self.stored.as_ref().map_or((0, 0), |stored| stored.pieces());
        gone += inner.live().index.removed();
        gone > 1_024 && gone > all / 4
    }

    /// Whether it may contain words of removed segments, or is unusable.
    pub(super) fn may_contain_removed(&self, inner: &Inner) -> bool {
        let is_there = || self.folder.as_ref().is_some_and(|folder| folder.exists());
        match self.stored.as_ref().map(|stored| stored.pieces()) {
            Some((1.., 0)) => inner.live().index.removed() > 0,
            _ => is_there(),
        }
    }

    /// Reloads everything in memory from the archive and the index.
    pub(super) fn reload(&mut self, inner: &Inner) -> Result<()> {
        let mut source = inner.opened()?;
        inner.catch_up(&mut **source)?;
        let live = inner.load(&mut **source, self)?;
        inner.swap(live);
        Ok(())
    }

    fn next(&mut self, inner: &Inner) -> Option<IndexBatch> {
        let mut live = inner.live_mut();
        live.index.freeze();
        let wordless = live.wordless.len().min(CHUNK);
        let (frozen, mut rows) = live.index.frozen_rows();
        rows.extend(&live.wordless[..wordless]);
        let ids: Vec<_> = rows.into_iter().filter_map(|row| live.id(row)).collect();
        let numbering = live.numbering;
        (!ids.is_empty()).then_some(IndexBatch { ids, frozen, wordless, numbering })
    }

    fn write(&mut self, inner: &Inner, work: &IndexBatch) -> Result<WriteOutcome> {
        let folder = self.folder.clone().unwrap_or_default();
        if self.stored.is_none() {
            self.number(&inner.live());
            self.stored = self.snapshot(&folder)?;
            if self.stored.as_ref().is_some_and(|stored| stored.pieces().0 > 0) {
                // Another process has built it meanwhile, perhaps with the same segments.
                return Ok(WriteOutcome::Stale);
            }
        }
        let (Some(disk), Some(stored)) = (&self.disk, &self.stored) else {
            return Err(Error::new(ErrorKind::NotFound, "the lexical index is missing"));
        };
        let size = if work.ids.len() > LARGE { Batch::Large } else { Batch::Small };
        disk.write(size, stored.version(), |sink| {
            for ids in work.ids.chunks(256) {
                for segment in inner.get(ids)?.into_iter().flatten() {
                    let head = lexical_head(&segment);
                    Piece::each(key_of(segment.id), &head, &segment.content, &mut *sink)?;
                }
            }
            Ok(())
        })
    }

    /// Switches searches to the index as it is now and drops the written parts from memory.
    fn publish(&mut self, inner: &Inner, work: &IndexBatch) -> Result<()> {
        self.number(&inner.live());
        let folder = self.folder.clone().unwrap_or_default();
        let Some(stored) = self.snapshot(&folder)? else { return Ok(()) };
        self.stored = Some(stored.clone());
        let old = {
            let mut live = inner.live_mut();
            if live.numbering != work.numbering {
                return Ok(());
            }
            live.wordless.drain(..work.wordless);
            live.index.publish(stored, work.frozen)
        };
        drop(old);
        Ok(())
    }

    /// Rebuilds the index. The old index is searched until the new one is ready.
    pub(super) fn rebuild(&mut self, inner: &Inner) -> Result<()> {
        let folder = self.folder.clone().filter(|_| !inner.settings.read_only);
        let Some(folder) = folder else { return self.reload(inner) };
        index_folder::check(&folder)?;
        // Other processes share the index, so it must include what they archived.
        inner.catch_up(&mut **inner.opened()?)?;
        // Rows without words count as missing, not as written.
        let work = {
            let mut live = inner.live_mut();
            live.index.freeze();
            let (frozen, _) = live.index.frozen_rows();
            let ids: Vec<_> = live.index.ids().to_vec();
            let (wordless, numbering) = (live.wordless.len(), live.numbering);
            IndexBatch { ids, frozen, wordless, numbering }
        };
        let written = DiskIndex::create(&folder).and_then(|disk| {
            (self.disk, self.stored) = (Some(disk), None);
            self.write(inner, &work)
        });
        match written {
            Ok(WriteOutcome::Committed) => self.publish(inner, &work),
            Ok(WriteOutcome::Busy | WriteOutcome::Stale) => self.reload(inner),
            Err(error) => {
                // New words stay in memory, and stored ones stay mapped.
                self.disk = None;
                inner.warn(format!("the lexical index cannot be written: {error}"));
                Err(error)
            }
        }
    }
}

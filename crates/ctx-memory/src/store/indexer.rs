//! What writes the index on disk, batch by batch.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ctx_core::{Error, ErrorKind, Result};
use foldhash::{HashMap, HashMapExt};

use super::Inner;
use super::live::Live;
use super::load::Shared;
use crate::SegmentId;
use crate::index::{Batch, DiskIndex, Piece, Written, key_of, place};
use crate::search::lexical_head;
use crate::text::Terms;

/// So many segments are written at once where there are many; then they are found.
const CHUNK: usize = 50_000;

/// A batch of more segments than this is written with more memory.
const LARGE: usize = 5_000;

/// The index on disk, and what is known of it.
pub(super) struct Indexer {
    folder: Option<PathBuf>,
    disk: Option<DiskIndex>,
    stored: Option<Shared>,
    /// The rows of the segments, as they were numbered last.
    rows: HashMap<u64, u32>,
    known: usize,
    numbering: u64,
    /// How many vectors there were when a graph over them found too little.
    pub(super) weak: usize,
    /// The numbering for which the graph on disk was looked at.
    pub(super) looked_at: Option<u64>,
}

/// How much is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Much {
    /// Everything.
    All,
    /// Batches that are worth a commit.
    Batches,
}

/// What is to be written.
struct Work {
    ids: Vec<SegmentId>,
    /// How many of those set aside it is.
    frozen: usize,
    /// How many of those whose words are nowhere.
    wordless: usize,
    numbering: u64,
}

impl Indexer {
    pub(super) fn new(folder: Option<PathBuf>) -> Self {
        Self {
            folder,
            disk: None,
            stored: None,
            rows: HashMap::new(),
            known: 0,
            numbering: 0,
            weak: 0,
            looked_at: None,
        }
    }

    /// The index as it is, for rows that were numbered anew. `None` where there is none that can be
    /// used; why is told.
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
            // The first batch makes it.
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
            inner.warn(format!("the lexical index is made anew: {error}"));
            self.disk = None;
            if let Err(error) = place::clear(&folder) {
                inner.warn(format!("there is no lexical index: {error}"));
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
        let rows = &self.rows;
        let read = |disk: &DiskIndex| disk.snapshot(|key| rows.get(&key).copied()).map(Arc::new);
        self.disk.as_ref().map(read).transpose()
    }

    /// Learns the rows of segments that are new.
    fn number(&mut self, live: &Live) {
        if self.numbering != live.numbering {
            self.numbering = live.numbering;
            self.rows.clear();
            self.known = 0;
        }
        let ids = live.index.ids();
        let new = ids.get(self.known..).unwrap_or_default();
        self.rows.extend(new.iter().map(|id| key_of(*id)).zip(self.known as u32..));
        self.known = ids.len();
    }

    /// Deletes the index, with what its terms tell.
    pub(super) fn delete(&mut self) -> Result<()> {
        (self.disk, self.stored) = (None, None);
        self.folder.as_deref().map_or(Ok(()), place::clear)
    }

    /// Whether an index can be where it belongs. What else is there is told of, and stays; words are
    /// kept in memory then.
    pub(super) fn has_place(&self, inner: &Inner) -> bool {
        let Some(folder) = &self.folder else { return false };
        let Err(error) = place::check(folder) else { return true };
        inner.warn(format!("the lexical index is kept in memory: {}", error.told()));
        false
    }

    /// Makes what is missing: the index of words, hash vectors, a graph over vectors.
    pub(super) fn run(&mut self, inner: &Inner, much: Much) -> Result<()> {
        let is_written = self.folder.is_some() && !inner.settings.read_only;
        let written = match is_written && self.has_place(inner) {
            true => self.write_words(inner, much),
            false => Ok(()),
        };
        // Vectors do not wait for an index that cannot be written.
        inner.hash_missing()?;
        written?;
        self.build_graph(inner)
    }

    /// Writes everything that is not in the index. One that is gone or damaged is made anew; one
    /// that cannot be written is done without, and told of.
    fn write_words(&mut self, inner: &Inner, much: Much) -> Result<()> {
        let damaged = self.stored.as_ref().is_some_and(|stored| stored.is_damaged());
        let gone = self.disk.is_some() && !self.is_there();
        if damaged || gone {
            let why = if gone { "it was deleted" } else { "it cannot be read" };
            inner.warn(format!("the lexical index is made anew: {why}"));
            return self.rebuild(inner);
        }
        if self.is_stale(inner) {
            // What is not known here may have been added by another process.
            self.reload(inner)?;
            if self.is_stale(inner) {
                self.rebuild(inner)?;
                self.reload(inner)?;
            }
        }
        // Else each message that is added meanwhile would be a commit of its own.
        while (much == Much::All || inner.has_batch())
            && let Some(work) = self.next(inner)
        {
            match self.write(inner, &work) {
                Ok(Written::Committed) => self.publish(inner, &work)?,
                // Another process writes. What is new stays in memory until next time.
                Ok(Written::Busy) => break,
                Ok(Written::Stale) => self.reload(inner)?,
                // The disk is full, perhaps. What is new stays in memory until next time.
                Err(error) if error.kind() == ErrorKind::Io && self.is_there() => {
                    inner.warn(format!("the lexical index cannot be written: {error}"));
                    break;
                }
                Err(error) => {
                    inner.warn(format!("the lexical index is made anew: {error}"));
                    return self.rebuild(inner);
                }
            }
        }
        Ok(())
    }

    fn is_there(&self) -> bool {
        self.disk.as_ref().is_some_and(DiskIndex::is_there)
    }

    /// Whether much of the index is of segments that are gone.
    fn is_stale(&self, inner: &Inner) -> bool {
        let (all, mut gone) = self.stored.as_ref().map_or((0, 0), |stored| stored.pieces());
        gone += inner.live().index.removed();
        gone > 1_024 && gone > all / 4
    }

    /// Whether it may hold words of segments that are gone, or none at all that can be used.
    pub(super) fn tells_of_what_is_gone(&self, inner: &Inner) -> bool {
        let is_there = || self.folder.as_ref().is_some_and(|folder| folder.exists());
        match self.stored.as_ref().map(|stored| stored.pieces()) {
            Some((1.., 0)) => inner.live().index.removed() > 0,
            _ => is_there(),
        }
    }

    /// Everything in memory anew, from the archive and the index as they are.
    pub(super) fn reload(&mut self, inner: &Inner) -> Result<()> {
        let mut source = inner.opened()?;
        inner.catch_up(&mut source)?;
        let live = inner.load(&mut source, self)?;
        inner.swap(live);
        Ok(())
    }

    fn next(&mut self, inner: &Inner) -> Option<Work> {
        let mut live = inner.live_mut();
        live.index.freeze();
        let wordless = live.wordless.len().min(CHUNK);
        let (frozen, mut rows) = live.index.frozen_rows();
        rows.extend(&live.wordless[..wordless]);
        let ids: Vec<_> = rows.into_iter().filter_map(|row| live.id(row)).collect();
        let numbering = live.numbering;
        (!ids.is_empty()).then_some(Work { ids, frozen, wordless, numbering })
    }

    fn write(&mut self, inner: &Inner, work: &Work) -> Result<Written> {
        let folder = self.folder.clone().unwrap_or_default();
        if self.stored.is_none() {
            self.number(&inner.live());
            self.stored = self.snapshot(&folder)?;
            if self.stored.as_ref().is_some_and(|stored| stored.pieces().0 > 0) {
                // Another process made it meanwhile, perhaps of the same.
                return Ok(Written::Stale);
            }
        }
        let (Some(disk), Some(stored)) = (&self.disk, &self.stored) else {
            return Err(Error::new(ErrorKind::NotFound, "there is no lexical index"));
        };
        let size = if work.ids.len() > LARGE { Batch::Large } else { Batch::Small };
        let mut scanner = Terms::default();
        disk.write(size, stored.version(), |sink| {
            for ids in work.ids.chunks(256) {
                for segment in inner.get(ids)?.into_iter().flatten() {
                    let head = lexical_head(&segment);
                    Piece::each(
                        &mut scanner,
                        key_of(segment.id),
                        &head,
                        &segment.content,
                        &mut *sink,
                    )?;
                }
            }
            Ok(())
        })
    }

    /// Has the index searched as it is now, in the place of what was written.
    fn publish(&mut self, inner: &Inner, work: &Work) -> Result<()> {
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

    /// Makes the index anew. What there is of it is searched until the new one is there.
    pub(super) fn rebuild(&mut self, inner: &Inner) -> Result<()> {
        let folder = self.folder.clone().filter(|_| !inner.settings.read_only);
        let Some(folder) = folder else { return self.reload(inner) };
        place::check(&folder)?;
        // The index is that of other processes too: what they archived belongs in it.
        inner.catch_up(&mut *inner.opened()?)?;
        // Rows without their words count as missing, not as written.
        let work = {
            let mut live = inner.live_mut();
            live.index.freeze();
            let (frozen, _) = live.index.frozen_rows();
            let ids: Vec<_> = live.index.ids().to_vec();
            let (wordless, numbering) = (live.wordless.len(), live.numbering);
            Work { ids, frozen, wordless, numbering }
        };
        let written = DiskIndex::create(&folder).and_then(|disk| {
            (self.disk, self.stored) = (Some(disk), None);
            self.write(inner, &work)
        });
        match written {
            Ok(Written::Committed) => self.publish(inner, &work),
            Ok(Written::Busy | Written::Stale) => self.reload(inner),
            Err(error) => {
                // What was new stays in memory, and what was stored stays mapped.
                self.disk = None;
                inner.warn(format!("the lexical index cannot be written: {error}"));
                Err(error)
            }
        }
    }
}

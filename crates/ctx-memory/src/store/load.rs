//! Loads the searchable state from the files.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use ctx_core::Result;

use super::Inner;
use super::indexer::Indexer;
use super::live::Live;
use super::vectors::hashed;
use crate::archive::{Changes, Segments, Source};
use ctx_search::lexical::Postings;
use ctx_search::near::Rows;
use ctx_search::search::Speaker;
use ctx_search::{Segment, SegmentId};

/// The number of unindexed segments that are read when a store is opened. If there are more, they
/// can be searched once the index is written.
const READ_AT_ONCE: usize = 4_096;

/// Texts of at least this many bytes are split into words before the lock is taken.
const LONG: usize = 64 << 10;

impl Inner {
    pub(super) fn open(&self) -> Result<()> {
        let mut indexer = self.indexer();
        let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_open.load(Ordering::Acquire) {
            return Ok(());
        }
        if let Some(folder) = &self.folder {
            let path = folder.join("segments.jsonl");
            let mut segments = Segments::open(path, self.settings.limits, self.settings.now())?;
            if !self.settings.read_only
                && let Err(error) = segments.keep_rows()
            {
                self.warn(format!("the next start reads the whole archive: {error}"));
            }
            *source = Box::new(segments);
            self.warn_of_damage(&**source, 0);
        }
        let live = self.load(&mut **source, &mut indexer)?;
        self.swap(live);
        self.is_open.store(true, Ordering::Release);
        Ok(())
    }

    /// Loads everything in the source. Uncommitted segments are carried over.
    pub(super) fn load(&self, source: &mut dyn Source, indexer: &mut Indexer) -> Result<Live> {
        let (numbering, pending) = {
            let live = self.live();
            // In the order of arrival, which determines neighbouring turns.
            let mut pending: Vec<_> = live.pending.values().cloned().collect();
            pending.sort_by_key(|segment| live.row(segment.id));
            (live.numbering + 1, pending)
        };
        let damaged = source.unreadable();
        let mut live = Live::new(&self.settings, numbering);
        live.exact_up_to = self.live().exact_up_to;
        live.reserve(source.count());
        source.each_row(&mut |row| {
            let at = live.index.add_row(row.id, row.session, row.timestamp, row.speaker);
            live.add(at);
        });
        self.load_words(&mut live, source, indexer)?;
        for segment in pending {
            if live.row(segment.id).is_none() {
                let row = live.index.add(&segment);
                live.add(row);
                live.pending.insert(segment.id, segment);
            }
        }
        self.load_vectors(&mut live, source)?;
        let ids = live.index.ids().to_vec();
        live.locate_all(source);
        if self.warn_of_damage(source, damaged) {
            // Some lines turned out not to be segments.
            let is_there =
                |id: &SegmentId| source.place(*id).is_some() || live.pending.contains_key(id);
            let gone: Vec<_> = ids.into_iter().filter(|id| !is_there(id)).collect();
            gone.into_iter().for_each(|id| live.remove(id));
        }
        Ok(live)
    }

    /// Loads the index on disk, and adds the words of segments that are not in it.
    fn load_words(
        &self,
        live: &mut Live,
        source: &mut dyn Source,
        indexer: &mut Indexer,
    ) -> Result<()> {
        let stored = indexer.open(self, live);
        let mut has_words = vec![false; live.index.row_count()];
        for owner in stored.iter().flat_map(|stored| stored.owners()) {
            if let Some(has) = has_words.get_mut(*owner as usize) {
                *has = true;
            }
        }
        let missing: Vec<u32> =
            (0..).zip(&has_words).filter(|(_, has)| !**has).map(|(row, _)| row).collect();
        if let Some(stored) = stored {
            live.index.publish(stored, 0);
        }
        // Without writable files, no index will be built later.
        let is_written = self.folder.is_some() && !self.settings.read_only;
        if missing.len() <= READ_AT_ONCE || !is_written || !indexer.has_place(self) {
            for rows in missing.chunks(256) {
                let ids: Vec<_> = rows.iter().filter_map(|row| live.id(*row)).collect();
                for (row, segment) in rows.iter().zip(source.get(&ids)?) {
                    if let Some(segment) = segment {
                        live.index.add_words(*row, &segment);
                    }
                }
            }
        } else {
            live.wordless = missing;
            self.was_wordless.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Warns of unreadable lines, if there are more than the `known` ones.
    pub(super) fn warn_of_damage(&self, source: &dyn Source, known: usize) -> bool {
        let more = source.unreadable().saturating_sub(known);
        if more > 0 {
            let archive = self.folder.as_ref().map(|folder| folder.join("segments.jsonl"));
            let lines = if more == 1 { "line" } else { "lines" };
            self.warn(format!(
                "{more} {lines} of the archive ({}) cannot be read and are not searched",
                archive.unwrap_or_default().display()
            ));
        }
        more > 0
    }

    /// Makes an added segment searchable.
    pub(super) fn show(&self, segment: &Segment, is_pending: bool) {
        let hash = self.settings.hashes().then(|| hashed(segment));
        // Split here, so that no search waits for a long text.
        let long = segment.content.len() > LONG;
        let speaker = Speaker::of(segment);
        {
            let mut live = self.live_mut();
            let row =
                live.index.add_row(segment.id, &segment.session_id, segment.timestamp, speaker);
            live.add(row);
            if is_pending && self.folder.is_some() {
                live.pending.insert(segment.id, segment.clone());
            }
            if let Some(vector) = &hash {
                live.vectors.get_or_insert_with(|| Rows::new(vector.len())).add(row, vector);
            }
            if !long {
                live.index.add_words(row, segment);
            } else {
                drop(live);
                let words = ctx_search::SearchIndex::words_of(row, segment);
                self.live_mut().index.add_frozen(words);
            }
        }
        if let Some(vector) = hash {
            self.keep_vector(segment.id, &vector);
        }
    }

    /// Applies other processes' changes of the source.
    pub(super) fn catch_up(&self, source: &mut dyn Source) -> Result<()> {
        let changes = source.refresh()?;
        self.follow(source, &changes)
    }

    /// Applies changes of the source.
    pub(super) fn follow(&self, source: &mut dyn Source, changes: &Changes) -> Result<()> {
        let unknown: Vec<SegmentId> = {
            let mut live = self.live_mut();
            changes.added.iter().for_each(|id| {
                live.pending.remove(id);
            });
            changes.removed.iter().for_each(|id| live.remove(*id));
            changes.added.iter().filter(|id| live.row(**id).is_none()).copied().collect()
        };
        let removed: HashSet<_> = changes.removed.iter().collect();
        for ids in unknown.chunks(256) {
            for segment in source.get(ids)?.into_iter().flatten() {
                if !removed.contains(&segment.id) {
                    self.show(&segment, false);
                }
            }
        }
        self.live_mut().locate(changes.added.iter().copied(), |id| source.place(id));
        Ok(())
    }
}

/// An index shared by both sides of a snapshot.
pub(super) type Shared = Arc<ctx_search::index::Snapshot>;

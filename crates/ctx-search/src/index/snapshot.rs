//! The index as of a commit.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ctx_core::{Error, ErrorKind, Result};
use foldhash::HashSet;
use tantivy::postings::BlockSegmentPostings;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{InvertedIndexReader, Searcher, Term};

use super::document::{KEY, LENGTH};
use super::failed;
use crate::lexical::{Corpus, Posting, Postings};

/// A document whose segment has left the archive; it is skipped.
const GONE: u32 = u32::MAX;

/// The searchable state of an index on disk. Later writes do not change it, and it survives the
/// deletion of the index, because its files stay mapped.
pub struct Snapshot {
    parts: Vec<IndexSegment>,
    terms: Field,
    /// By piece: the key of its segment, its row, and its number of words.
    keys: Vec<u64>,
    owners: Vec<u32>,
    lengths: Vec<u16>,
    words: u64,
    version: u64,
    damaged: AtomicBool,
}

/// A tantivy segment.
struct IndexSegment {
    index: Arc<InvertedIndexReader>,
    first_piece: u32,
}

impl Snapshot {
    /// Reads what a search needs in memory. `row_of` maps a segment's key to its row.
    pub(super) fn read(
        searcher: &Searcher,
        terms: Field,
        version: u64,
        row_of: impl Fn(u64) -> Option<u32>,
    ) -> Result<Self> {
        let (mut keys, mut lengths, mut parts) = (Vec::new(), Vec::new(), Vec::new());
        for reader in searcher.segment_readers() {
            let reading = |error| failed("reading", error);
            parts.push(IndexSegment {
                index: reader.inverted_index(terms).map_err(reading)?,
                first_piece: keys.len() as u32,
            });
            let column = |name| reader.fast_fields().u64(name).map_err(reading);
            let (key, length) = (column(KEY)?, column(LENGTH)?);
            for doc in 0..reader.max_doc() {
                let (Some(key), Some(length)) = (key.first(doc), length.first(doc)) else {
                    return Err(Error::new(
                        ErrorKind::Corrupt,
                        "the lexical index: a row is empty",
                    ));
                };
                keys.push(key);
                lengths.push(u16::try_from(length).unwrap_or(u16::MAX));
            }
        }
        if u32::try_from(keys.len()).is_err() {
            return Err(Error::new(ErrorKind::Corrupt, "the lexical index: too many pieces"));
        }
        let words = lengths.iter().map(|length| u64::from(*length)).sum();
        let owners = keys.iter().map(|&key| row_of(key).unwrap_or(GONE)).collect();
        let damaged = AtomicBool::new(false);
        Ok(Self { parts, terms, keys, owners, lengths, words, version, damaged })
    }

    /// Identifies the commit; for [`super::DiskIndex::write`].
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The keys of the segments it contains.
    pub fn keys(&self) -> HashSet<u64> {
        self.keys.iter().copied().collect()
    }

    /// The number of pieces, and how many of them belong to no segment of the archive any more.
    pub fn pieces(&self) -> (usize, usize) {
        (self.owners.len(), self.owners.iter().filter(|owner| **owner == GONE).count())
    }

    /// Whether a read failed.
    pub fn is_damaged(&self) -> bool {
        self.damaged.load(Ordering::Relaxed)
    }

    /// Returns what was read, or `None` and sets [`Self::is_damaged`].
    fn or_damaged<T>(&self, read: io::Result<Option<T>>) -> Option<T> {
        read.unwrap_or_else(|_| {
            self.damaged.store(true, Ordering::Relaxed);
            None
        })
    }

    fn postings(&self, part: &IndexSegment, term: &Term) -> Option<BlockSegmentPostings> {
        self.or_damaged(part.index.read_block_postings(term, IndexRecordOption::WithFreqs))
    }
}

impl Postings for Snapshot {
    fn corpus(&self) -> Corpus {
        Corpus { pieces: self.owners.len() as u64, words: self.words }
    }

    fn frequency(&self, term: &str) -> u64 {
        let term = Term::from_field_text(self.terms, term);
        let of = |part: &IndexSegment| self.or_damaged(part.index.get_term_info(&term));
        self.parts.iter().filter_map(of).map(|info| u64::from(info.doc_freq)).sum()
    }

    fn each_block(&self, term: &str, block: &mut dyn FnMut(&[Posting])) {
        let term = Term::from_field_text(self.terms, term);
        let mut found = Vec::with_capacity(128);
        for part in &self.parts {
            let Some(mut postings) = self.postings(part, &term) else { continue };
            while postings.block_len() > 0 {
                found.clear();
                found.extend((0..postings.block_len()).filter_map(|at| {
                    let piece = part.first_piece.checked_add(postings.doc(at))?;
                    let length = *self.lengths.get(piece as usize)?;
                    let count = u16::try_from(postings.freq(at)).unwrap_or(u16::MAX);
                    Some(Posting { piece, count, length })
                }));
                block(&found);
                postings.advance();
            }
        }
    }

    fn owners(&self) -> &[u32] {
        &self.owners
    }
}

ctx_core::partial_debug!(Snapshot, it, pieces = it.owners.len());

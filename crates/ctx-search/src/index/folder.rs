//! The folder of the index.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result};
use tantivy::directory::MmapDirectory;
use tantivy::indexer::IndexWriterOptions;
use tantivy::{Index, IndexReader, IndexWriter, ReloadPolicy, TantivyDocument};

use super::document::{Fields, Piece};
use super::{Snapshot, failed, index_folder};
use crate::disk;

/// Increased when the terms of a text change. It is written with each commit.
const VERSION: &str = "ctx-memory 1";

/// The memory budget of tantivy's writer in bytes: for a small batch, and for a whole store.
const SMALL_BUDGET: usize = 16 << 20;
const LARGE_BUDGET: usize = 128 << 20;

/// An index in a folder. It is locked only while it is written.
pub struct DiskIndex {
    folder: PathBuf,
    index: Index,
    fields: Fields,
}

/// The result of writing a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// It is on disk.
    Committed,
    /// Not written: another process is writing.
    Busy,
    /// Not written: the index has changed since the snapshot was taken.
    Stale,
}

impl DiskIndex {
    /// Opens the index in `folder`, or creates an empty one. Verifies the checksum of every file.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`] if it is damaged, of another version or not an index of ctx;
    /// [`ErrorKind::Io`] if the folder cannot be created or read.
    pub fn open(folder: &Path) -> Result<Self> {
        disk::create_private_dir(folder)?;
        // tantivy trusts what it reads; invalid data can make it panic.
        let opened = catch_unwind(AssertUnwindSafe(|| Self::open_checked(folder)));
        opened
            .unwrap_or_else(|_| Err(corrupt("it cannot be read")))
            .map_err(|e| in_folder(e, folder))
    }

    fn open_checked(folder: &Path) -> Result<Self> {
        let fields = Fields::default();
        let opening = |error| failed("opening", error);
        let directory = MmapDirectory::open(folder).map_err(|error| opening(error.into()))?;
        if !Index::exists(&directory).map_err(|error| opening(error.into()))? {
            let settings = tantivy::IndexSettings::default();
            let index =
                Index::create(directory, fields.schema.clone(), settings).map_err(opening)?;
            return Ok(Self { folder: folder.to_owned(), index, fields });
        }
        let index = Index::open(directory).map_err(opening)?;
        let meta = index.load_metas().map_err(opening)?;
        let is_ours = meta.segments.is_empty() || meta.payload.as_deref() == Some(VERSION);
        if !is_ours || index.schema() != fields.schema {
            return Err(corrupt("it has another version"));
        }
        if !index.validate_checksum().map_err(opening)?.is_empty() {
            return Err(corrupt("its checksums are wrong"));
        }
        Ok(Self { folder: folder.to_owned(), index, fields })
    }

    /// Deletes the index in `folder` and opens an empty one there.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] if the index cannot be deleted or created.
    pub fn create(folder: &Path) -> Result<Self> {
        index_folder::clear(folder)?;
        Self::open(folder)
    }

    /// Whether the index is still in its folder.
    pub fn is_there(&self) -> bool {
        self.folder.join("meta.json").is_file()
    }

    /// Returns the committed state. `row_of` maps a segment's key to its row.
    pub fn snapshot(&self, row_of: impl Fn(u64) -> Option<u32>) -> Result<Snapshot> {
        let read = || {
            // Read first: a commit in between makes the next write check again.
            let version = self.version()?;
            let reader: IndexReader = self
                .index
                .reader_builder()
                .reload_policy(ReloadPolicy::Manual)
                .try_into()
                .map_err(|error| failed("opening", error))?;
            Snapshot::read(&reader.searcher(), self.fields.terms, version, row_of)
        };
        let read = catch_unwind(AssertUnwindSafe(read));
        read.unwrap_or_else(|_| Err(corrupt("it cannot be read")))
            .map_err(|error| in_folder(error, &self.folder))
    }

    /// Commits pieces that are missing from the last snapshot, whose version is `seen`. `fill`
    /// passes them to the sink and stops at its first error. After an error, the index contains
    /// none of the pieces.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] if the disk is full or the folder is missing.
    pub fn write(
        &self,
        size: Batch,
        seen: u64,
        fill: impl FnOnce(&mut dyn FnMut(Piece) -> Result<()>) -> Result<()>,
    ) -> Result<WriteOutcome> {
        match self.try_write(size, seen, fill) {
            Ok(written) => Ok(written),
            Err(error) if error.kind() == ErrorKind::Locked => Ok(WriteOutcome::Busy),
            Err(error) => Err(in_folder(error, &self.folder)),
        }
    }

    fn try_write(
        &self,
        size: Batch,
        seen: u64,
        fill: impl FnOnce(&mut dyn FnMut(Piece) -> Result<()>) -> Result<()>,
    ) -> Result<WriteOutcome> {
        let writing = |error| failed("writing", error);
        let options = IndexWriterOptions::builder()
            .num_worker_threads(1)
            .num_merge_threads(1)
            .memory_budget_per_thread(match size {
                Batch::Small => SMALL_BUDGET,
                Batch::Large => LARGE_BUDGET,
            })
            .build();
        let mut writer: IndexWriter<TantivyDocument> =
            self.index.writer_with_options(options).map_err(writing)?;
        if self.version()? != seen {
            return Ok(WriteOutcome::Stale);
        }
        fill(&mut |piece| {
            writer.add_document(piece.document(&self.fields)).map_err(writing)?;
            Ok(())
        })?;
        let mut commit = writer.prepare_commit().map_err(writing)?;
        commit.set_payload(VERSION);
        commit.commit().map_err(writing)?;
        writer.wait_merging_threads().map_err(writing)?;
        Ok(WriteOutcome::Committed)
    }

    /// Identifies a commit.
    pub fn version(&self) -> Result<u64> {
        Ok(self.index.load_metas().map_err(|error| failed("reading", error))?.opstamp)
    }
}

/// The size of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batch {
    /// Segments since the last commit.
    Small,
    /// A large part of a store.
    Large,
}

fn corrupt(what: &'static str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("the lexical index is damaged: {what}"))
}

fn in_folder(error: Error, folder: &Path) -> Error {
    error.with("folder", folder.display())
}

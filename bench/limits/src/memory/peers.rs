//! tantivy and SQLite's FTS5, with the same texts and questions.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use rusqlite::Connection;
use tantivy::collector::TopDocs;
use tantivy::indexer::IndexWriterOptions;
use tantivy::query::{BooleanQuery, Occur, Query, TermQuery};
use tantivy::schema::{
    Field, IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::{Index, IndexReader, IndexWriter, ReloadPolicy, TantivyDocument, Term};

use super::corpus::text;
use super::progress::{Stopwatch, chunks};

/// The number of hits of a search.
pub(super) const HITS: usize = 20;

/// The memory of tantivy's writer in bytes: as much as ctx gives it for a large batch.
const BUDGET: usize = 128 << 20;

/// A plain index of tantivy on disk: a document per segment, its default tokeniser, BM25.
pub(super) struct Tantivy {
    index: Index,
    reader: IndexReader,
    fields: [Field; 2],
}

impl Tantivy {
    /// Indexes the texts with one thread, and returns how long that took.
    pub(super) fn build(folder: &Path, count: usize) -> Result<(Self, Duration)> {
        fs::create_dir_all(folder)?;
        let mut schema = Schema::builder();
        let indexing = TextFieldIndexing::default()
            .set_tokenizer("default")
            .set_index_option(IndexRecordOption::WithFreqs);
        let options = TextOptions::default().set_indexing_options(indexing);
        let text_field = schema.add_text_field("text", options);
        let place = schema.add_u64_field("place", NumericOptions::default().set_fast());
        let index = Index::create_in_dir(folder, schema.build())?;
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        let tantivy = Self { index, reader, fields: [text_field, place] };
        let mut watch = Stopwatch::default();
        let mut writer = tantivy.writer()?;
        for numbers in chunks(0..count) {
            let texts: Vec<_> = numbers.map(|n| tantivy.document(n)).collect();
            watch.run(|| {
                texts.into_iter().try_for_each(|text| writer.add_document(text).map(drop))
            })?;
        }
        watch.run(|| {
            writer.commit()?;
            writer.wait_merging_threads()
        })?;
        tantivy.reader.reload()?;
        Ok((tantivy, watch.elapsed()))
    }

    /// Returns a writer for [`Self::add`].
    pub(super) fn writer(&self) -> Result<IndexWriter<TantivyDocument>> {
        let options = IndexWriterOptions::builder()
            .num_worker_threads(1)
            .num_merge_threads(1)
            .memory_budget_per_thread(BUDGET)
            .build();
        Ok(self.index.writer_with_options(options)?)
    }

    fn document(&self, n: usize) -> TantivyDocument {
        let [text_field, place] = self.fields;
        let mut document = TantivyDocument::default();
        document.add_text(text_field, text(n));
        document.add_u64(place, n as u64);
        document
    }

    /// Returns the numbers of the best texts that contain any of the words.
    pub(super) fn search(&self, words: &str) -> Result<Vec<u64>> {
        let terms = words.split(' ').map(|word| {
            let term = Term::from_field_text(self.fields[0], word);
            let query = TermQuery::new(term, IndexRecordOption::WithFreqs);
            (Occur::Should, Box::new(query) as Box<dyn Query>)
        });
        let searcher = self.reader.searcher();
        let best = TopDocs::with_limit(HITS).order_by_score();
        let mut hits = Vec::with_capacity(HITS);
        for (_, at) in searcher.search(&BooleanQuery::new(terms.collect()), &best)? {
            let places = searcher.segment_reader(at.segment_ord).fast_fields().u64("place")?;
            hits.extend(places.first(at.doc_id));
        }
        Ok(hits)
    }

    /// Adds a text, and finds it.
    pub(super) fn add(&self, writer: &mut IndexWriter<TantivyDocument>, n: usize) -> Result<()> {
        writer.add_document(self.document(n))?;
        writer.commit()?;
        self.reader.reload()?;
        ensure!(self.search(&format!("t{n}"))? == [n as u64], "tantivy does not find the text");
        Ok(())
    }
}

/// A table of FTS5 without the texts themselves, in a file of its own.
pub(super) struct Fts5 {
    base: Connection,
}

impl Fts5 {
    pub(super) fn build(file: &Path, count: usize) -> Result<Self> {
        let base = Connection::open(file)?;
        // The other sides do not wait for the disk either.
        base.pragma_update(None, "journal_mode", "WAL")?;
        base.pragma_update(None, "synchronous", "OFF")?;
        base.execute_batch(
            "CREATE VIRTUAL TABLE said USING fts5(text, content='', tokenize='porter unicode61'); BEGIN",
        )?;
        let fts5 = Self { base };
        (0..count).try_for_each(|n| fts5.insert(n))?;
        fts5.base.execute_batch(
            "COMMIT; INSERT INTO said(said) VALUES('optimize'); PRAGMA wal_checkpoint(TRUNCATE)",
        )?;
        Ok(fts5)
    }

    fn insert(&self, n: usize) -> Result<()> {
        let mut insert = self.base.prepare_cached("INSERT INTO said(rowid, text) VALUES (?, ?)")?;
        insert.execute((n as i64, text(n)))?;
        Ok(())
    }

    /// Returns the numbers of the best texts that contain any of the words.
    pub(super) fn search(&self, words: &str) -> Result<Vec<u64>> {
        let any = words.split(' ').map(|word| format!("\"{word}\"")).collect::<Vec<_>>();
        let mut select = self
            .base
            .prepare_cached("SELECT rowid FROM said WHERE said MATCH ? ORDER BY rank LIMIT ?")?;
        let rows = select.query_map((any.join(" OR "), HITS as i64), |row| row.get::<_, i64>(0))?;
        Ok(rows.map(|row| row.map(|n| n as u64)).collect::<Result<_, _>>()?)
    }

    /// Adds a text, and finds it.
    pub(super) fn add(&self, n: usize) -> Result<()> {
        self.insert(n)?;
        ensure!(self.search(&format!("t{n}"))? == [n as u64], "FTS5 does not find the text");
        Ok(())
    }
}

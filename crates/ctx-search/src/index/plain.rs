//! tantivy's own ranking, as the reference of an evaluation.

use ctx_core::Result;
use rust_stemmers::{Algorithm, Stemmer};
use tantivy::collector::TopDocs;
use tantivy::indexer::NoMergePolicy;
use tantivy::query::{BooleanQuery, Occur, Query, TermQuery};
use tantivy::schema::{IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{
    LowerCaser, PreTokenizedString, RemoveLongFilter, SimpleTokenizer, TextAnalyzer, Token,
    TokenStream,
};
use tantivy::{Index, IndexWriter, TantivyDocument, TantivyError, Term};

use super::failed;
use crate::Segment;

/// The memory budget of the writer in bytes: tantivy's minimum.
const BUDGET: usize = 15_000_000;

/// Segments in memory, ranked by tantivy alone: one document each, the tokens of `en_stem`, BM25
/// with tantivy's constants, any term of the query.
pub struct PlainIndex {
    index: Index,
    writer: IndexWriter<TantivyDocument>,
    count: u64,
}

impl PlainIndex {
    /// Returns an empty index.
    ///
    /// # Errors
    ///
    /// If tantivy cannot start its writer.
    pub fn new() -> Result<Self> {
        let mut schema = Schema::builder();
        let indexing = TextFieldIndexing::default()
            .set_tokenizer("raw")
            .set_index_option(IndexRecordOption::WithFreqs);
        schema.add_text_field("text", TextOptions::default().set_indexing_options(indexing));
        schema.add_u64_field("place", NumericOptions::default().set_fast());
        let index = Index::create_in_ram(schema.build());
        let writer = index.writer_with_num_threads(1, BUDGET);
        let writer = writer.map_err(|error| failed("opening", error))?;
        // Parts that are never merged stay in the same order in every run.
        writer.set_merge_policy(Box::new(NoMergePolicy));
        Ok(Self { index, writer, count: 0 })
    }

    /// Adds segments after the others.
    ///
    /// # Errors
    ///
    /// If tantivy cannot write them.
    pub fn add(&mut self, segments: &[Segment]) -> Result<()> {
        self.try_add(segments).map_err(|error| failed("writing", error))
    }

    fn try_add(&mut self, segments: &[Segment]) -> tantivy::Result<()> {
        let schema = self.index.schema();
        let (text, place) = (schema.get_field("text")?, schema.get_field("place")?);
        for segment in segments {
            let name = segment.name.iter().flat_map(|name| tokens(name));
            let tokens = name.chain(tokens(&segment.content)).collect();
            let mut document = TantivyDocument::default();
            document
                .add_pre_tokenized_text(text, PreTokenizedString { text: String::new(), tokens });
            document.add_u64(place, self.count);
            self.writer.add_document(document)?;
            self.count += 1;
        }
        self.writer.commit().map(drop)
    }

    /// Returns the best segments by their number, best first; of equal scores, the earlier first.
    ///
    /// # Errors
    ///
    /// If tantivy cannot read its index.
    pub fn search(&self, query: &str, limit: usize) -> Result<Vec<usize>> {
        self.try_search(query, limit).map_err(|error| failed("reading", error))
    }

    fn try_search(&self, query: &str, limit: usize) -> tantivy::Result<Vec<usize>> {
        let text = self.index.schema().get_field("text")?;
        let terms = tokens(query).into_iter().map(|token| {
            let term = Term::from_field_text(text, &token.text);
            let query = TermQuery::new(term, IndexRecordOption::WithFreqs);
            (Occur::Should, Box::new(query) as Box<dyn Query>)
        });
        let searcher = self.index.reader()?.searcher();
        let best = TopDocs::with_limit(limit.max(1)).order_by_score();
        let mut hits = Vec::new();
        for (score, at) in searcher.search(&BooleanQuery::new(terms.collect()), &best)? {
            let places = searcher.segment_reader(at.segment_ord).fast_fields().u64("place")?;
            let place = places.first(at.doc_id);
            let missing = || TantivyError::InternalError("a document without a number".into());
            hits.push((score, place.ok_or_else(missing)? as usize));
        }
        hits.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        Ok(hits.into_iter().map(|(_, place)| place).collect())
    }
}

/// Returns the tokens of tantivy's `en_stem`, whose stemmer is not in this build of tantivy.
fn tokens(text: &str) -> Vec<Token> {
    let stemmer = Stemmer::create(Algorithm::English);
    let analyzer = TextAnalyzer::builder(SimpleTokenizer::default());
    let mut analyzer = analyzer.filter(RemoveLongFilter::limit(40)).filter(LowerCaser).build();
    let mut found = Vec::new();
    let mut stream = analyzer.token_stream(text);
    stream.process(&mut |token| {
        found.push(Token { text: stemmer.stem(&token.text).into_owned(), ..token.clone() });
    });
    found
}

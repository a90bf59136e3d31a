//! The indexed fields of a segment.

use ctx_core::Result;
use tantivy::TantivyDocument;
use tantivy::schema::{
    Field, IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::tokenizer::{PreTokenizedString, Token};

use crate::lexical::pieces;
use ctx_text::{TermKind, each_term};

/// The name of the column with the key of each document's segment.
pub(super) const KEY: &str = "key";
/// The name of the column with the length of each document.
pub(super) const LENGTH: &str = "length";

/// The fields of a document, and their schema.
#[derive(Clone, Debug)]
pub(super) struct Fields {
    pub(super) schema: Schema,
    pub(super) terms: Field,
    key: Field,
    length: Field,
}

impl Default for Fields {
    fn default() -> Self {
        let mut schema = Schema::builder();
        let indexing = TextFieldIndexing::default()
            // Terms are pre-tokenised, so this tokeniser is never called.
            .set_tokenizer("raw")
            .set_fieldnorms(false)
            .set_index_option(IndexRecordOption::WithFreqs);
        let options = TextOptions::default().set_indexing_options(indexing);
        let terms = schema.add_text_field("terms", options);
        let [key, length] = [KEY, LENGTH]
            .map(|name| schema.add_u64_field(name, NumericOptions::default().set_fast()));
        Self { schema: schema.build(), terms, key, length }
    }
}

/// A piece of a segment, ready to be written.
#[derive(Debug)]
pub struct Piece {
    key: u64,
    length: u64,
    terms: PreTokenizedString,
}

impl Piece {
    /// Passes the pieces of a segment to `each`, up to its first error. `head` is put before each
    /// piece, as in [`crate::lexical::Delta::add`].
    pub fn each(
        key: u64,
        head: &str,
        text: &str,
        each: &mut dyn FnMut(Self) -> Result<()>,
    ) -> Result<()> {
        for piece in pieces(text) {
            let (mut length, mut tokens) = (0, Vec::new());
            for part in [head, piece] {
                each_term(part, |term| {
                    length += u64::from(term.kind != TermKind::Whole);
                    // Positions are not stored.
                    let text = term.text.to_owned();
                    tokens.push(Token { text, position: 0, ..Token::default() });
                });
            }
            each(Self { key, length, terms: PreTokenizedString { text: String::new(), tokens } })?;
        }
        Ok(())
    }

    pub(super) fn document(self, fields: &Fields) -> TantivyDocument {
        let mut document = TantivyDocument::default();
        document.add_pre_tokenized_text(fields.terms, self.terms);
        document.add_u64(fields.key, self.key);
        document.add_u64(fields.length, self.length);
        document
    }
}

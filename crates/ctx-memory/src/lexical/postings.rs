//! What an index has to give for its segments to be scored.

/// A piece that holds a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posting {
    /// The piece, by its place in the index.
    pub piece: u32,
    /// How often it holds the term.
    pub count: u16,
    /// How many words it has.
    pub length: u16,
}

/// How much an index holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Corpus {
    /// How many pieces.
    pub pieces: u64,
    /// How many words they have together.
    pub words: u64,
}

impl Corpus {
    /// Two indexes as one.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { pieces: self.pieces + other.pieces, words: self.words + other.words }
    }
}

/// An index from terms to the pieces that hold them.
pub trait Postings {
    /// How much it holds.
    fn corpus(&self) -> Corpus;
    /// How many pieces hold a term.
    fn frequency(&self, term: &str) -> u64;
    /// The pieces that hold a term, each once, in as many blocks as suits the index.
    fn each_block(&self, term: &str, block: &mut dyn FnMut(&[Posting]));
    /// The segment that each piece is of, in the order of the pieces.
    fn owners(&self) -> &[u32];
}

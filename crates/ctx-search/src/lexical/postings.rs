//! The interface of an index for scoring.

/// A piece that holds a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posting {
    /// The piece's number in the index.
    pub piece: u32,
    /// The number of occurrences of the term.
    pub count: u16,
    /// The number of words in the piece.
    pub length: u16,
}

/// The size of an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Corpus {
    /// The number of pieces.
    pub pieces: u64,
    /// Their total number of words.
    pub words: u64,
}

impl Corpus {
    /// Returns the sum of two sizes.
    pub(crate) fn and(self, other: Self) -> Self {
        Self { pieces: self.pieces + other.pieces, words: self.words + other.words }
    }
}

/// An index from terms to the pieces that hold them.
pub trait Postings {
    /// Returns its size.
    fn corpus(&self) -> Corpus;
    /// Returns the number of pieces that hold a term.
    fn frequency(&self, term: &str) -> u64;
    /// Passes the pieces that hold a term to `block`, each piece once, in blocks of any size.
    fn each_block(&self, term: &str, block: &mut dyn FnMut(&[Posting]));
    /// Returns the segment of each piece, in the order of the pieces.
    fn owners(&self) -> &[u32];
}

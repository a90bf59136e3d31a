//! The lexical index on disk: pieces are tantivy documents, scored by [`crate::lexical`].
//!
//! tantivy stores the postings; scoring happens elsewhere. A document has the terms of a piece,
//! without positions, and two numbers: the key of its segment and its length, both exact (tantivy's
//! own lengths are rounded). Texts are not stored.
//!
//! The index is derived from the archive. An index that is damaged or of another version is
//! reported as [`ErrorKind::Corrupt`], and its owner rebuilds it.

mod document;
mod folder;
pub mod index_folder;
mod plain;
mod snapshot;
#[cfg(test)]
mod tests;

pub use document::Piece;
pub use folder::{Batch, DiskIndex, WriteOutcome};
pub use plain::PlainIndex;
pub use snapshot::Snapshot;

use ctx_core::{Error, ErrorKind};
use tantivy::TantivyError;
use tantivy::directory::error::LockError;

use crate::SegmentId;

/// Returns a segment's key in the index: the first half of its id. Two segments with the same key
/// would be mistaken for each other; that takes about 2^32 segments.
pub fn key_of(id: SegmentId) -> u64 {
    id.0.as_u64_pair().0
}

/// Converts an error of tantivy.
fn failed(doing: &'static str, error: TantivyError) -> Error {
    let kind = match &error {
        TantivyError::LockFailure(LockError::LockBusy, _) => ErrorKind::Locked,
        TantivyError::LockFailure(..)
        | TantivyError::IoError(_)
        | TantivyError::OpenWriteError(_) => ErrorKind::Io,
        _ => ErrorKind::Corrupt,
    };
    let hint = match kind {
        ErrorKind::Locked => "another process is writing it; new messages are found meanwhile",
        _ => {
            "the archive is not affected, and the index is rebuilt from it; check whether \
             the disk is full, and the owner of the folder"
        }
    };
    Error::new(kind, format!("the lexical index: {doing} failed")).source(error).hint(hint)
}

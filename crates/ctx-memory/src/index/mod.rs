//! The lexical index on disk: pieces as documents of tantivy, scored by [`crate::lexical`].
//!
//! tantivy keeps the postings; what a posting is worth is decided elsewhere. A document has the
//! terms of a piece, without their places, and two numbers: the key of its segment and its length,
//! both exact (tantivy's own lengths are rounded). Texts are not stored.
//!
//! The index is derived from the archive. One that is of another version or damaged is reported as
//! [`ErrorKind::Corrupt`](ctx_core::ErrorKind::Corrupt), and whoever owns it makes it anew.

mod document;
mod folder;
pub(crate) mod place;
mod snapshot;
#[cfg(test)]
mod tests;

pub(crate) use document::Piece;
pub(crate) use folder::{Batch, DiskIndex, Written};
pub(crate) use snapshot::Snapshot;

use ctx_core::{Error, ErrorKind};
use tantivy::TantivyError;
use tantivy::directory::error::LockError;

use crate::SegmentId;

/// What a segment is known by in the index: the first half of its id. Two segments that share it
/// would be found in each other's place, which takes 2^32 segments to happen.
pub(crate) fn key_of(id: SegmentId) -> u64 {
    id.0.as_u64_pair().0
}

/// What tantivy says, as an error of ours.
fn failed(doing: &'static str, error: TantivyError) -> Error {
    let kind = match &error {
        TantivyError::LockFailure(LockError::LockBusy, _) => ErrorKind::Locked,
        TantivyError::LockFailure(..)
        | TantivyError::IoError(_)
        | TantivyError::OpenWriteError(_) => ErrorKind::Io,
        _ => ErrorKind::Corrupt,
    };
    let hint = match kind {
        ErrorKind::Locked => "another process writes it; what is new is found meanwhile",
        _ => {
            "nothing that was archived is lost: the index is made anew from the archive; see whether \
             the disk is full, and who owns the folder"
        }
    };
    Error::new(kind, format!("the lexical index: {doing} failed")).source(error).hint(hint)
}

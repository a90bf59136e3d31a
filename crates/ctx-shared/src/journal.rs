//! Commits while the store is away: the lines stay in the session's file, which is their journal.
//!
//! `<file>.journal` has the number of bytes that were acknowledged without the store. The next commit
//! sends what is missing, and deletes it. If the host ends before, the session keeps these lines when
//! it is next opened here, unless another host has written to it since.

use std::path::{Path, PathBuf};

use ctx_core::Result;
use ctx_disk as disk;

use crate::sync::{read_number, write_number};

/// Records that the complete lines of a file are acknowledged.
pub(crate) fn begin(path: &Path, bytes: u64) -> Result<()> {
    write_number(&journal_file(path), bytes)
}

/// Records that the store has all lines of a file.
pub(crate) fn end(path: &Path) -> Result<()> {
    disk::remove(&journal_file(path), "cannot delete the journal of a session").map(drop)
}

/// Returns the number of bytes that were acknowledged without the store; 0 if there are none.
pub(crate) fn acknowledged(path: &Path) -> Result<u64> {
    read_number(&journal_file(path), 0)
}

fn journal_file(path: &Path) -> PathBuf {
    disk::beside(path, ".journal")
}

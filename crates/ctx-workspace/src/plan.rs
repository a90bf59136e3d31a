//! Plans an update.

use std::collections::HashMap;

use crate::list::FileRow;
use crate::walk::{Walked, WalkedFile};

/// The plan of an update.
pub(super) struct UpdatePlan {
    /// Rows that stay as they are.
    pub(super) kept: Vec<FileRow>,
    /// Files to read, with their old rows.
    pub(super) to_read: Vec<(WalkedFile, Option<FileRow>)>,
    /// The number of listed files that no longer exist.
    pub(super) removed: usize,
    pub(super) left: usize,
    /// Whether the list must be rewritten, even if no file is read.
    pub(super) is_changed: bool,
}

impl UpdatePlan {
    /// Plans what to do with the files found, given the rows of `listed` ones. Files beyond a total
    /// of `most` bytes are left for later.
    pub(super) fn new(listed: Vec<FileRow>, walked: &Walked, most: u64, mode: Mode) -> Self {
        let mut known: HashMap<String, FileRow> =
            listed.into_iter().map(|row| (row.path.clone(), row)).collect();
        let (mut kept, mut to_read, mut left) = (Vec::new(), Vec::new(), 0);
        let mut bytes = 0u64;
        for candidate in &walked.found {
            let row = known.remove(&candidate.path);
            let is_same = |row: &FileRow| {
                candidate.stamp.is_some()
                    && row.stamp == candidate.stamp
                    && row.bytes == candidate.bytes
                    && (mode == Mode::Trusting || !row.is_unreadable())
            };
            match row {
                Some(row) if is_same(&row) => kept.push(row),
                row => {
                    bytes = bytes.saturating_add(candidate.bytes);
                    if bytes > most {
                        // A search shows the old text only if the file still contains it.
                        kept.extend(row);
                        left += 1;
                    } else {
                        to_read.push((candidate.clone(), row));
                    }
                }
            }
        }
        let mut removed = 0;
        if walked.is_cut_short {
            // Files that the walk has not reached may still exist.
            kept.extend(known.into_values());
        } else {
            removed = known.len();
        }
        Self { kept, to_read, removed, left, is_changed: removed > 0 }
    }

    /// Keeps files with unchanged content, for which the index is not needed. Only reads files of
    /// the same length.
    pub(super) fn settle(&mut self, holds_same: impl Fn(&FileRow) -> bool) {
        for (candidate, row) in std::mem::take(&mut self.to_read) {
            match row {
                Some(row) if row.bytes == candidate.bytes && holds_same(&row) => {
                    self.is_changed |= row.stamp != candidate.stamp;
                    self.kept.push(FileRow { stamp: candidate.stamp, ..row });
                }
                row => self.to_read.push((candidate, row)),
            }
        }
    }

    /// Returns the listed files that still exist.
    pub(super) fn into_rows(self) -> Vec<FileRow> {
        self.kept.into_iter().chain(self.to_read.into_iter().filter_map(|(_, row)| row)).collect()
    }
}

/// How far to trust the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// A listed file is unchanged if its metadata is.
    Trusting,
    /// Every listed file is looked up in the index, and unreadable files are tried again.
    Checking,
}

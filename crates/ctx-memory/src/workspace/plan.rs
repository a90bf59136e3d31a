//! What an update has to do.

use std::collections::HashMap;

use super::list::FileRow;
use super::walk::{Candidate, Walked};

/// What is to be done.
pub(super) struct Plan {
    /// What stays as it is.
    pub(super) kept: Vec<FileRow>,
    /// What has to be read, and what it was.
    pub(super) to_read: Vec<(Candidate, Option<FileRow>)>,
    /// How many that are listed are gone.
    pub(super) removed: usize,
    pub(super) left: usize,
    /// Whether the list is to be written anew, whatever is read.
    pub(super) is_changed: bool,
}

impl Plan {
    /// What of the files found is to be done, of which those `listed` are known. Files beyond `most`
    /// bytes are left for later.
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
                        // What it said is shown only while it still says it.
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
            // What was not come to may be there still.
            kept.extend(known.into_values());
        } else {
            removed = known.len();
        }
        Self { kept, to_read, removed, left, is_changed: removed > 0 }
    }

    /// Keeps what holds the same as before, for which the index is not needed. Only files of the
    /// same length are looked into.
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

    /// What is listed and still there.
    pub(super) fn into_rows(self) -> Vec<FileRow> {
        self.kept.into_iter().chain(self.to_read.into_iter().filter_map(|(_, row)| row)).collect()
    }
}

/// How much of the list is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// What is listed is, as long as the file looks the same from outside.
    Trusting,
    /// Every file that is listed is looked for in the index, and what could not be read is tried
    /// again.
    Checking,
}

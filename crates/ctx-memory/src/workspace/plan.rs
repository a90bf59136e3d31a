//! What an update has to do.

use std::collections::HashMap;

use super::list::FileRow;
use super::walk::Candidate;

/// What is to be done.
pub(super) struct Plan {
    /// What stays as it is.
    pub(super) kept: Vec<FileRow>,
    /// What has to be read, and what it was.
    pub(super) to_read: Vec<(Candidate, Option<FileRow>)>,
    /// How many that are listed are gone.
    pub(super) removed: usize,
    pub(super) left: usize,
}

impl Plan {
    /// What of the files found is to be done, of which those `listed` are known. Files beyond `most`
    /// bytes are left for later.
    pub(super) fn new(listed: Vec<FileRow>, found: &[Candidate], most: u64) -> Self {
        let mut known: HashMap<String, FileRow> =
            listed.into_iter().map(|row| (row.path.clone(), row)).collect();
        let mut plan = Self { kept: Vec::new(), to_read: Vec::new(), removed: 0, left: 0 };
        let mut bytes = 0u64;
        for candidate in found {
            let row = known.remove(&candidate.path);
            let is_same = |row: &FileRow| {
                candidate.stamp.is_some()
                    && row.stamp == candidate.stamp
                    && row.bytes == candidate.bytes
            };
            match row {
                Some(row) if is_same(&row) => plan.kept.push(row),
                row => {
                    bytes = bytes.saturating_add(candidate.bytes);
                    if bytes > most {
                        // What it said is shown only while it still says it.
                        plan.kept.extend(row);
                        plan.left += 1;
                    } else {
                        plan.to_read.push((candidate.clone(), row));
                    }
                }
            }
        }
        plan.removed = known.len();
        plan
    }

    /// What is listed and still there.
    pub(super) fn into_rows(self) -> Vec<FileRow> {
        self.kept.into_iter().chain(self.to_read.into_iter().filter_map(|(_, row)| row)).collect()
    }
}

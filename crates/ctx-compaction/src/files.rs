//! Which files were read and which were modified.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// The files a session touched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct FileLists {
    /// Files that were read and not modified.
    pub read_files: BTreeSet<String>,
    /// Files that were written or edited.
    pub modified_files: BTreeSet<String>,
}

impl FileLists {
    /// The lists that stand in a summary as `<read-files>` and `<modified-files>`, a path a line.
    #[must_use]
    pub fn in_summary(summary: &str) -> Self {
        Self {
            read_files: block(summary, "read-files"),
            modified_files: block(summary, "modified-files"),
        }
    }
}

/// The lines of every `<tag>` block, each tag on a line of its own.
fn block(text: &str, tag: &str) -> BTreeSet<String> {
    let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
    let mut inside = false;
    let mut lines = BTreeSet::new();
    for line in text.lines().map(str::trim) {
        if line == open {
            inside = true;
        } else if line == close {
            inside = false;
        } else if inside && !line.is_empty() {
            lines.insert(line.to_owned());
        }
    }
    lines
}

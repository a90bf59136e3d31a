//! `files.jsonl`: the indexed files, one per line, after a header with the folder and the settings.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use ctx_core::Result;
use serde::{Deserialize, Serialize};

use crate::chunk::LineRange;
use crate::disk;
use crate::hash::FileHash;
use crate::settings::Cut;
use crate::walk::Stamp;

/// A longer line is invalid: a file of 1 MiB has 1,000 chunks.
const LONGEST_LINE: u64 = 1 << 20;

/// The first line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListHeader {
    workspace: String,
    #[serde(flatten)]
    cut: Cut,
}

impl ListHeader {
    pub(super) fn new(folder: &Path, cut: Cut) -> Self {
        Self { workspace: folder.to_string_lossy().into_owned(), cut }
    }
}

/// The kind of a file's content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    #[default]
    Text,
    Binary,
    /// Listed, so that it is not tried again until it changes.
    Unreadable,
}

impl Kind {
    pub(super) fn is_text(&self) -> bool {
        *self == Self::Text
    }
}

/// A file as it was indexed. Only a text file has chunks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct FileRow {
    pub(super) path: String,
    pub(super) bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) stamp: Option<Stamp>,
    pub(super) hash: FileHash,
    #[serde(skip_serializing_if = "Kind::is_text", default)]
    pub(super) kind: Kind,
    pub(super) chunks: Vec<LineRange>,
}

impl FileRow {
    pub(super) fn is_unreadable(&self) -> bool {
        self.kind == Kind::Unreadable
    }
}

/// Returns the readable rows; none if the list is missing or has another folder or other settings.
/// The file of an unreadable row is indexed again.
pub(super) fn read(path: &Path, header: &ListHeader) -> Result<Vec<FileRow>> {
    let failed = |error| disk::io_error("cannot read the list of the workspace", path, error);
    let file = match disk::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        opened => opened.map_err(failed)?,
    };
    let mut reader = BufReader::with_capacity(256 << 10, file);
    let (mut line, mut rows, mut is_ours) = (Vec::new(), Vec::new(), false);
    while next_line(&mut reader, &mut line).map_err(failed)? {
        if is_ours {
            rows.extend(serde_json::from_slice::<FileRow>(&line));
        } else if serde_json::from_slice::<ListHeader>(&line).is_ok_and(|found| found == *header) {
            is_ours = true;
        } else {
            return Ok(Vec::new());
        }
    }
    Ok(rows)
}

/// Reads the next line, or the beginning of one that is too long.
fn next_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    use io::Read;
    line.clear();
    let read = reader.by_ref().take(LONGEST_LINE).read_until(b'\n', line)?;
    if read as u64 == LONGEST_LINE && !line.ends_with(b"\n") {
        line.clear();
        reader.skip_until(b'\n')?;
    }
    Ok(read > 0)
}

/// Replaces the rows. The caller holds the lock of the list.
pub(super) fn write(path: &Path, header: &ListHeader, rows: &[FileRow]) -> Result<()> {
    disk::replace(path, |out| {
        serde_json::to_writer(&mut *out, header)?;
        out.write_all(b"\n")?;
        for row in rows {
            serde_json::to_writer(&mut *out, row)?;
            out.write_all(b"\n")?;
        }
        Ok(())
    })
}

//! Reading a log once, from end to end, to be able to append to it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};

use ctx_core::EntryId;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::ids::TakenIds;

/// What appending needs to know of a file.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// The first line, without its line break.
    pub(crate) header: Vec<u8>,
    /// The entry the next one becomes a child of.
    pub(crate) leaf: Option<EntryId>,
    pub(super) ids: TakenIds,
    /// The file's length in bytes.
    pub(crate) len: u64,
    /// How the file ends.
    pub(crate) tail: Tail,
}

/// How a file ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tail {
    /// With a line break, or it is empty.
    #[default]
    Whole,
    /// With a whole entry that lacks its line break.
    NoNewline,
    /// With part of an entry, from this offset on.
    Torn(u64),
}

#[derive(Deserialize)]
struct Head {
    #[serde(rename = "type", default)]
    kind: Option<String>,
    #[serde(default)]
    id: Option<String>,
    #[serde(rename = "targetId", default)]
    target_id: Option<String>,
}

/// Reads `file` from its beginning. Lines that cannot be read are passed over: bridging them is
/// the readers' business, and appending does not depend on it.
pub(crate) fn scan(file: &File) -> io::Result<Scan> {
    let mut reader = BufReader::with_capacity(256 << 10, file);
    reader.seek(SeekFrom::Start(0))?;
    let mut scan = Scan::default();
    let mut line = Vec::new();
    let mut first = true;
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(scan);
        }
        let start = scan.len;
        scan.len += read as u64;
        let terminated = line.ends_with(b"\n");
        let text = line.trim_ascii();
        let entry = serde_json::from_slice::<Head>(text).ok();
        if !terminated {
            let whole = entry.is_some() || serde_json::from_slice::<IgnoredAny>(text).is_ok();
            scan.tail = if whole { Tail::NoNewline } else { Tail::Torn(start) };
        }
        if first {
            scan.header = text.to_vec();
            first = false;
            continue;
        }
        let Some(Head { kind, id: Some(id), target_id }) = entry else { continue };
        scan.ids.insert(&id);
        let moves = kind.as_deref() == Some("leaf");
        scan.leaf = if moves { target_id.map(Into::into) } else { Some(id.into()) };
    }
}

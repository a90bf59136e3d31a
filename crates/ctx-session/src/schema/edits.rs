//! Editing single values of a JSON line, and writing the line.

use std::io::{self, Write};

use ctx_core::text::Slice;
use ctx_core::{Error, ErrorKind, Result};
use ctx_dialect::json::{Object, quote};
use serde::Serialize;

use super::entry::iso;
use crate::entry::byte_range;

/// Edits of single values in the text of an object; everything else stays byte for byte.
pub(crate) struct Edits<'t> {
    text: &'t str,
    object: &'t Object<'t>,
    /// Ranges of the text and their replacements.
    changes: Vec<(usize, usize, String)>,
    added: Vec<(&'static str, String)>,
}

impl<'t> Edits<'t> {
    pub(crate) fn new(text: &'t str, object: &'t Object<'t>) -> Self {
        Self { text, object, changes: Vec::new(), added: Vec::new() }
    }

    pub(crate) fn set(&mut self, key: &'static str, json: String) {
        match self.object.field(key) {
            Some(raw) => self.replace(raw.get(), json),
            None => self.added.push((key, json)),
        }
    }

    /// Replaces `part`, which must be a slice of the text.
    pub(crate) fn replace(&mut self, part: &str, json: String) {
        let (from, to) = byte_range(self.text, part);
        self.changes.push((from as usize, to as usize, json));
    }

    pub(crate) fn apply(mut self) -> String {
        if !self.added.is_empty() {
            let fields =
                self.added.iter().rev().map(|(key, json)| format!("{}:{json}", quote(key)));
            let fields = fields.collect::<Vec<_>>().join(",");
            // After `type`, which pi writes first; otherwise at the beginning.
            let change = match self.object.field("type") {
                Some(kind) => {
                    let (_, end) = byte_range(self.text, kind.get());
                    (end as usize, end as usize, format!(",{fields}"))
                }
                None => {
                    let open = self.text.find('{').map_or(0, |at| at + 1);
                    let comma = if self.object.iter().next().is_some() { "," } else { "" };
                    (open, open, format!("{fields}{comma}"))
                }
            };
            self.changes.push(change);
        }
        self.changes.sort_by_key(|(from, ..)| *from);
        let mut out = String::with_capacity(self.text.len() + 64);
        let mut at = 0;
        for (from, to, json) in self.changes {
            out.push_str(self.text.slice(at..from));
            out.push_str(&json);
            at = to;
        }
        out.push_str(self.text.slice(at..));
        out
    }
}

/// Returns a value as JSON.
pub(crate) fn json(value: &(impl Serialize + ?Sized)) -> Result<String> {
    serde_json::to_string(value).map_err(|e| {
        Error::new(ErrorKind::InvalidInput, "cannot write the entry as JSON").source(e)
    })
}

/// Writes a JSON text as one line.
pub(crate) fn write_json_line<W: Write + ?Sized>(out: &mut W, text: &str) -> Result<()> {
    let text = text.trim();
    // A value may span several lines in a document; in JSONL it is one line.
    let flat = || text.replace(['\n', '\r'], " ");
    let written = match text.contains(['\n', '\r']) {
        true => out.write_all(flat().as_bytes()),
        false => out.write_all(text.as_bytes()),
    };
    written.and_then(|()| out.write_all(b"\n")).map_err(write_error)
}

pub(crate) fn write_error(e: io::Error) -> Error {
    let hint =
        crate::disk::hint(e.kind()).unwrap_or("check the destination of the copy, and try again");
    Error::new(ErrorKind::Io, "cannot write the copy").source(e).hint(hint)
}

/// Formats a time as pi does; the epoch if it is unknown.
pub(crate) fn iso_or_epoch(time: Option<ctx_core::Timestamp>) -> String {
    let epoch = |_| iso(ctx_core::Timestamp::default());
    iso(time.unwrap_or_default()).or_else(epoch).unwrap_or_default()
}

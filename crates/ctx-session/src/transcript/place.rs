//! Where a message is in the file of its transcript.

use ctx_core::Message;
use serde::Serialize;

use crate::entry::MessagePart;
use crate::source::{Source, Span};
use crate::transcript::Transcript;

/// Where a message is in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FilePlace {
    /// The path of the file.
    pub path: String,
    /// The line, from 1.
    pub line: u64,
    /// The number of bytes before the message.
    pub offset: u64,
    /// The length of the message in bytes, as written.
    pub bytes: u32,
}

impl Transcript {
    /// Returns where an entry is in the file. If its message was written over several lines, this is
    /// the first line whose part `matches`, else the first line. `None` for an unknown id, and for a
    /// file that does not contain these bytes: a database, or a damaged document that was repaired
    /// in memory.
    pub fn place_of(&self, id: &str, matches: impl Fn(&Message) -> bool) -> Option<FilePlace> {
        let index = self.index_of(id)?;
        let first = self.entries.get(index)?.head.map_or(index, |head| head as usize);
        let own = |at: usize| {
            self.entries
                .get(at)
                .filter(|entry| at == first || entry.head == u32::try_from(first).ok())
        };
        let has = |entry: &&crate::TreeEntry| {
            MessagePart::of(entry).load(self.source_of(entry)).is_ok_and(|part| matches(&part))
        };
        let entry = (first..self.entries.len()).filter_map(own).find(has).or_else(|| own(first))?;
        let (source, span) = (self.source_of(entry), entry.place.span);
        let path = source.path().filter(|path| path.is_file())?;
        let file = Source::open(path, |_, _| Ok(())).ok()?;
        if file.read(span).ok()? != source.read(span).ok()? {
            return None;
        }
        let mut line = entry.place.line;
        if self.is_document {
            let before =
                file.read(Span { offset: 0, len: u32::try_from(span.offset).ok()? }).ok()?;
            line = memchr::memchr_iter(b'\n', &before).count() as u64 + 1;
        }
        let path = path.display().to_string();
        Some(FilePlace { path, line, offset: span.offset, bytes: span.len })
    }
}

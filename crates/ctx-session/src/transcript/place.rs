//! Where a message is in the file of its transcript.

use ctx_core::Message;
use serde::Serialize;

use crate::entry::{MessagePart, TreeEntry};
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
        let parts = self.entries.iter().enumerate().skip(first);
        let mut parts = parts.filter(|(at, one)| *at == first || one.head == Some(first as u32));
        let has = |(_, one): &(usize, &TreeEntry)| {
            MessagePart::of(one).load(self.source_of(one)).is_ok_and(|part| matches(&part))
        };
        let entry =
            parts.find(has).map_or_else(|| self.entries.get(first), |(_, one)| Some(one))?;
        let (source, Span { offset, len }) = (self.source_of(entry), entry.place.span);
        let path = source.path().filter(|path| path.is_file())?;
        let file = Source::open(path, |_, _| Ok(())).ok()?;
        let mut line = entry.place.line;
        if self.is_document {
            let before = file.read(Span { offset: 0, len: u32::try_from(offset).ok()? }).ok()?;
            line = memchr::memchr_iter(b'\n', &before).count() as u64 + 1;
        }
        let is_there = file.read(entry.place.span).ok()? == source.read(entry.place.span).ok()?;
        is_there.then(|| FilePlace { path: path.display().to_string(), line, offset, bytes: len })
    }
}

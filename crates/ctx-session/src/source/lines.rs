//! Reading a source line by line through one reused buffer.

use std::io::{self, BufRead, BufReader, Read};

use ctx_core::Result;

use crate::source::Source;

/// The number of bytes read at once.
const CHUNK: usize = 256 * 1024;

/// One line, without its line break.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SourceLine<'a> {
    pub(crate) bytes: &'a [u8],
    /// The number of bytes before it in the source.
    pub(crate) offset: u64,
    /// Counted from 1.
    pub(crate) number: u64,
    /// Whether a line break follows.
    pub(crate) terminated: bool,
}

pub(crate) struct SourceLines<'s> {
    reader: BufReader<SourceReader<'s>>,
    /// The current line with its line break.
    line: Vec<u8>,
    /// The offset of that line in the source.
    offset: u64,
    number: u64,
}

impl<'s> SourceLines<'s> {
    pub(crate) fn new(source: &'s Source) -> Self {
        let reader = BufReader::with_capacity(CHUNK, SourceReader { source, at: 0 });
        Self { reader, line: Vec::new(), offset: 0, number: 0 }
    }

    /// Returns the next line, or `None` at the end. The last line is returned even without a final
    /// line break.
    pub(crate) fn next(&mut self) -> Result<Option<SourceLine<'_>>> {
        self.offset += self.line.len() as u64;
        self.line.clear();
        let read = self.reader.read_until(b'\n', &mut self.line);
        if read.map_err(|e| self.reader.get_ref().source.io(e))? == 0 {
            return Ok(None);
        }
        self.number += 1;
        let terminated = self.line.ends_with(b"\n");
        let bytes = &self.line[..self.line.len() - usize::from(terminated)];
        Ok(Some(SourceLine { bytes, offset: self.offset, number: self.number, terminated }))
    }
}

/// Reads a source from its beginning.
struct SourceReader<'s> {
    source: &'s Source,
    at: u64,
}

impl Read for SourceReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.source.read_at(self.at, into)?;
        self.at += n as u64;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<(String, u64, bool)> {
        let source = Source::memory(text.as_bytes().to_vec());
        let mut lines = SourceLines::new(&source);
        let mut out = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            let text = String::from_utf8(line.bytes.to_vec()).unwrap();
            out.push((text, line.offset, line.terminated));
        }
        out
    }

    #[test]
    fn lines_have_correct_offsets() {
        assert_eq!(lines(""), []);
        let expected = [("a", 0, true), ("", 2, true), ("bc", 3, false)];
        let found = lines("a\n\nbc");
        assert_eq!(found.len(), 3);
        for ((text, offset, terminated), expected) in found.iter().zip(expected) {
            assert_eq!((text.as_str(), *offset, *terminated), expected);
        }
    }

    #[test]
    fn lines_longer_than_the_buffer() {
        let long = "x".repeat(3 * CHUNK + 7);
        let text = format!("{long}\nshort\n{long}");
        let found = lines(&text);
        let sizes: Vec<_> = found.iter().map(|(text, ..)| text.len()).collect();
        assert_eq!(sizes, [long.len(), 5, long.len()]);
    }
}

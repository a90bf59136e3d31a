//! Reads a file line by line through a reused buffer.

use std::io::{self, BufRead, BufReader, Read};

/// Number of bytes per read.
const CHUNK: usize = 256 << 10;

/// The capacity the buffer may keep after a long line.
const KEEP: usize = 4 << 20;

/// One line, without its line break.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawLine<'a> {
    pub(crate) bytes: &'a [u8],
    /// The line's offset in the file.
    pub(crate) offset: u64,
    /// Whether a line break follows.
    pub(crate) terminated: bool,
}

pub(crate) struct LineReader<R> {
    reader: BufReader<R>,
    buffer: Vec<u8>,
    offset: u64,
}

impl<R: Read> LineReader<R> {
    /// Returns the lines of `reader`, which starts at `offset` of its file.
    pub(crate) fn new(reader: R, offset: u64) -> Self {
        Self { reader: BufReader::with_capacity(CHUNK, reader), buffer: Vec::new(), offset }
    }

    pub(crate) fn next(&mut self) -> io::Result<Option<RawLine<'_>>> {
        self.buffer.clear();
        if self.buffer.capacity() > KEEP {
            self.buffer.shrink_to(KEEP);
        }
        let offset = self.offset;
        let length = self.reader.read_until(b'\n', &mut self.buffer)?;
        if length == 0 {
            return Ok(None);
        }
        self.offset += length as u64;
        let terminated = self.buffer.last() == Some(&b'\n');
        let bytes = self.buffer.strip_suffix(b"\n").unwrap_or(&self.buffer);
        Ok(Some(RawLine { bytes, offset, terminated }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_any_length_have_correct_offsets() {
        let long = "x".repeat(3 * CHUNK + 7);
        let text = format!("a\n\n{long}\nbc");
        let mut lines = LineReader::new(text.as_bytes(), 10);
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found.push((line.bytes.len(), line.offset, line.terminated));
        }
        let after = 13 + long.len() as u64 + 1;
        assert_eq!(
            found,
            [(1, 10, true), (0, 12, true), (long.len(), 13, true), (2, after, false)]
        );
    }
}

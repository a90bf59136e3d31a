//! Reading a source line by line through one reused buffer.

use ctx_core::Result;

use crate::source::Source;

/// The number of bytes read at once. The buffer grows to the length of a longer line.
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
    source: &'s Source,
    buffer: Vec<u8>,
    /// The offset of `buffer` in the source.
    base: u64,
    /// The beginning of the current line in `buffer`.
    start: usize,
    /// `start..scanned` contains no line break.
    scanned: usize,
    filled: usize,
    number: u64,
    at_end: bool,
}

impl<'s> SourceLines<'s> {
    pub(crate) fn new(source: &'s Source) -> Self {
        Self {
            source,
            buffer: Vec::new(),
            base: 0,
            start: 0,
            scanned: 0,
            filled: 0,
            number: 0,
            at_end: false,
        }
    }

    /// Returns the next line, or `None` at the end. The last line is returned even without a final
    /// line break.
    pub(crate) fn next(&mut self) -> Result<Option<SourceLine<'_>>> {
        loop {
            if let Some(found) = memchr::memchr(b'\n', &self.buffer[self.scanned..self.filled]) {
                let end = self.scanned + found;
                return Ok(Some(self.line(end, true)));
            }
            self.scanned = self.filled;
            if self.at_end {
                let rest = self.start < self.filled;
                return Ok(rest.then(|| self.line(self.filled, false)));
            }
            self.refill()?;
        }
    }

    fn line(&mut self, end: usize, terminated: bool) -> SourceLine<'_> {
        let start = self.start;
        self.start = end + usize::from(terminated);
        self.scanned = self.start;
        self.number += 1;
        SourceLine {
            bytes: &self.buffer[start..end],
            offset: self.base + start as u64,
            number: self.number,
            terminated,
        }
    }

    fn refill(&mut self) -> Result<()> {
        self.buffer.copy_within(self.start..self.filled, 0);
        self.base += self.start as u64;
        self.filled -= self.start;
        self.scanned -= self.start;
        self.start = 0;
        if self.filled + CHUNK / 2 > self.buffer.len() {
            self.grow()?;
        }
        let n =
            self.source.read_at(self.base + self.filled as u64, &mut self.buffer[self.filled..])?;
        self.filled += n;
        self.at_end = n == 0;
        Ok(())
    }

    /// Doubles the buffer, up to the rest of the source: a line of 100 MB must use no more than 100
    /// MB.
    fn grow(&mut self) -> Result<()> {
        let left = self.source.len()?.saturating_sub(self.base);
        let left = usize::try_from(left).unwrap_or(usize::MAX).saturating_add(1);
        let wanted = (self.buffer.len() * 2).clamp(CHUNK, left.max(CHUNK));
        // If the file grows while it is read, the measured rest is too short.
        let wanted = wanted.max(self.filled + CHUNK / 2);
        self.buffer.reserve_exact(wanted.saturating_sub(self.buffer.len()));
        self.buffer.resize(wanted, 0);
        Ok(())
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
    fn lines_and_their_places() {
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

//! Checking both ends of a file before appending to it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};

use serde::de::IgnoredAny;

use crate::read_at;

/// The chunk size of the search for the beginning of the last line.
const STEP: u64 = 64 << 10;

/// The end of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tail {
    /// A line break, or the file is empty.
    #[default]
    Whole,
    /// A complete entry without its line break.
    NoNewline,
    /// A part of an entry.
    Torn {
        /// The offset of that part.
        at: u64,
        /// Whether complete entries precede it on its line.
        after_whole: bool,
    },
}

/// Returns the first line without its line break. Moves the cursor.
///
/// # Errors
///
/// If the file cannot be read.
pub fn first_line(mut file: &File) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    BufReader::new(file).read_until(b'\n', &mut line)?;
    line.truncate(line.trim_ascii_end().len());
    Ok(line)
}

/// Returns the file's length and how it ends.
pub(super) fn tail(mut file: &File) -> io::Result<(u64, Tail)> {
    let length = file.seek(SeekFrom::End(0))?;
    let start = last_line(file, length)?;
    if start == length {
        return Ok((length, Tail::Whole));
    }
    let line = read_at(file, start, length - start)?;
    let mut values = serde_json::Deserializer::from_slice(&line).into_iter::<IgnoredAny>();
    let mut whole = 0;
    let torn = loop {
        match values.next() {
            Some(Ok(_)) => whole = values.byte_offset(),
            Some(Err(_)) => break true,
            None => break false,
        }
    };
    let at = start + whole as u64;
    let tail = if torn { Tail::Torn { at, after_whole: whole > 0 } } else { Tail::NoNewline };
    Ok((length, tail))
}

/// Returns the offset of the last line; the file's length if it ends in a line break.
fn last_line(file: &File, length: u64) -> io::Result<u64> {
    let mut end = length;
    while end > 0 {
        let start = end.saturating_sub(STEP);
        let chunk = read_at(file, start, end - start)?;
        if let Some(found) = memchr::memrchr(b'\n', &chunk) {
            return Ok(start + found as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn tail_of(text: &[u8]) -> Tail {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text).unwrap();
        let (length, tail) = tail(&file).unwrap();
        assert_eq!(length, text.len() as u64);
        tail
    }

    #[test]
    fn the_kinds_of_file_ends_are_distinguished() {
        let torn = |at, after_whole| Tail::Torn { at, after_whole };
        assert_eq!(tail_of(b""), Tail::Whole);
        assert_eq!(tail_of(b"{}\n"), Tail::Whole);
        assert_eq!(tail_of(b"{}"), Tail::NoNewline);
        assert_eq!(tail_of(b"{}\n{\"a\":1} "), Tail::NoNewline);
        assert_eq!(tail_of(b"{}\n{\"a\":"), torn(3, false));
        assert_eq!(tail_of(b"{}\n{\"a\":1}{\"a"), torn(10, true));
        assert_eq!(tail_of(b"{}\n\0\0"), torn(3, false));
        let long = [&b"{}\n\""[..], &[b'x'; 200_000]].concat();
        assert_eq!(tail_of(&long), torn(3, false));
        let deep = [&b"{}\n"[..], &[b'['; 200_000]].concat();
        assert_eq!(tail_of(&deep), torn(3, false));
    }
}

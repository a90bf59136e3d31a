//! Lines of limited length.

use std::io::{BufRead, ErrorKind, Result};

/// The result of reading a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum InputLine {
    /// A line without its line break.
    Text(Vec<u8>),
    /// A line over the limit; its content is discarded.
    TooLong,
}

/// Reads the next line of at most `most` bytes; `None` at the end.
pub(super) fn next_line(input: &mut impl BufRead, most: usize) -> Result<Option<InputLine>> {
    let mut line = Vec::new();
    let mut is_too_long = false;
    let mut is_any = false;
    loop {
        let chunk = match input.fill_buf() {
            Ok(chunk) => chunk,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if chunk.is_empty() {
            break;
        }
        is_any = true;
        let end = memchr::memchr(b'\n', chunk);
        let part = &chunk[..end.unwrap_or(chunk.len())];
        is_too_long |= line.len() + part.len() > most;
        if is_too_long {
            line = Vec::new();
        } else {
            line.extend_from_slice(part);
        }
        let used = part.len() + usize::from(end.is_some());
        input.consume(used);
        if end.is_some() {
            break;
        }
    }
    Ok(is_any.then_some(if is_too_long { InputLine::TooLong } else { InputLine::Text(line) }))
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn lines(text: &str, most: usize) -> Vec<InputLine> {
        // The buffer is smaller than the lines, so that they are read in chunks.
        let mut input = BufReader::with_capacity(3, text.as_bytes());
        std::iter::from_fn(|| next_line(&mut input, most).unwrap()).collect()
    }

    #[test]
    fn a_line_over_the_limit_is_skipped_and_the_next_is_read() {
        let text = |line: &str| InputLine::Text(line.as_bytes().to_vec());
        assert_eq!(
            lines("one\n123456789\nthree", 5),
            [text("one"), InputLine::TooLong, text("three")]
        );
        assert_eq!(lines("12345\n123456\n", 5), [text("12345"), InputLine::TooLong]);
        assert_eq!(lines("", 5), []);
        assert_eq!(lines("\n\n", 5), [text(""), text("")]);
    }
}

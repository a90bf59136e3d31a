//! Server-sent events, read from byte chunks of any size.

use std::borrow::Cow;

use ctx_core::text::Slice;

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// The event type; empty if the stream gives none.
    pub name: &'a str,
    /// The data lines, joined by line breaks; `None` if they are too large to be kept.
    pub data: Option<Cow<'a, str>>,
}

/// Parses a stream of server-sent events. Lines may end in LF, CR or CRLF; an event may be split
/// anywhere, also inside a character. Comments, ids and retry times are skipped.
#[derive(Debug)]
pub struct SseParser {
    line: Buffer,
    after_cr: bool,
    has_begun: bool,
    name: String,
    data: Buffer,
    has_data: bool,
    /// Whether name and data belong to an event that was already returned.
    is_done: bool,
}

impl SseParser {
    /// Creates a parser that keeps at most this many bytes of a line, and of the data of an event.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self {
            line: Buffer::new(most),
            after_cr: false,
            has_begun: false,
            name: String::new(),
            data: Buffer::new(most),
            has_data: false,
            is_done: false,
        }
    }

    /// Returns the next event that `bytes` complete, and removes the bytes that it read. `None`
    /// once all bytes were read.
    pub fn next(&mut self, bytes: &mut &[u8]) -> Option<SseEvent<'_>> {
        self.forget();
        while let Some(first) = bytes.first() {
            if std::mem::take(&mut self.after_cr) && *first == b'\n' {
                *bytes = bytes.slice(1..);
                continue;
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) else {
                self.line.push(std::mem::take(bytes));
                break;
            };
            self.line.push(bytes.slice(..end));
            self.after_cr = bytes.get(end) == Some(&b'\r');
            *bytes = bytes.slice(end + 1..);
            if self.end_line() {
                return self.event();
            }
        }
        None
    }

    /// Returns the event at the end of a stream without a closing empty line.
    pub fn finish(&mut self) -> Option<SseEvent<'_>> {
        self.forget();
        self.end_line();
        self.event()
    }

    /// Returns the number of buffered bytes.
    pub fn buffered(&self) -> usize {
        self.line.bytes.len() + self.data.bytes.len()
    }

    /// Whether the current event is too large, although its end has not arrived.
    pub fn is_too_large(&self) -> bool {
        self.line.is_too_large || self.data.is_too_large
    }

    /// Ends a line. Returns whether it ends an event with data.
    fn end_line(&mut self) -> bool {
        let unused = Buffer::new(self.line.most);
        let mut line = std::mem::replace(&mut self.line, unused);
        let has_begun = std::mem::replace(&mut self.has_begun, true);
        let bom: &[u8] = if has_begun { b"" } else { b"\xEF\xBB\xBF" };
        let bytes = line.bytes.strip_prefix(bom).unwrap_or(&line.bytes);
        let is_end = bytes.is_empty() && !line.is_too_large;
        if line.is_too_large {
            self.data.is_too_large = true;
            self.has_data = true;
        } else {
            self.field(bytes);
        }
        if is_end && !self.has_data {
            self.name.clear();
        }
        // The next line reuses the buffer.
        line.clear();
        self.line = line;
        is_end && self.has_data
    }

    fn field(&mut self, line: &[u8]) {
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let (name, value) = (line.slice(..colon), line.slice(colon..));
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"event" => self.name = String::from_utf8_lossy(value).into_owned(),
            b"data" => {
                if self.has_data {
                    self.data.push(b"\n");
                }
                self.data.push(value);
                self.has_data = true;
            }
            // A keep-alive comment, or a field that is not used here.
            _ => {}
        }
    }

    fn event(&mut self) -> Option<SseEvent<'_>> {
        self.is_done = true;
        let data = (!self.data.is_too_large).then(|| String::from_utf8_lossy(&self.data.bytes));
        self.has_data.then_some(SseEvent { name: &self.name, data })
    }

    fn forget(&mut self) {
        if std::mem::take(&mut self.is_done) {
            self.name.clear();
            self.data.clear();
            self.has_data = false;
        }
    }
}

/// A buffer with a size limit.
#[derive(Debug)]
pub(crate) struct Buffer {
    most: usize,
    pub(crate) bytes: Vec<u8>,
    pub(crate) is_too_large: bool,
}

impl Buffer {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, bytes: Vec::new(), is_too_large: false }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.is_too_large || self.bytes.len().saturating_add(bytes.len()) > self.most {
            self.is_too_large = true;
            self.bytes = Vec::new();
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.is_too_large = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let mut parser = SseParser::new(1024);
        let mut events = Vec::new();
        let mut keep = |event: SseEvent<'_>| {
            events.push((event.name.to_owned(), event.data.unwrap().into_owned()));
        };
        for mut piece in pieces.iter().copied() {
            while let Some(event) = parser.next(&mut piece) {
                keep(event);
            }
        }
        parser.finish().map(keep);
        events
    }

    #[test]
    fn streams_are_read_as_servers_write_them() {
        let cases: &[(&str, &[(&str, &str)])] = &[
            ("data: a\n\ndata: b\n\n", &[("", "a"), ("", "b")]),
            ("data: a\r\n\r\ndata: b\r\n\r\n", &[("", "a"), ("", "b")]),
            ("data: a\r\rdata: b\r\r", &[("", "a"), ("", "b")]),
            ("event: x\ndata: 1\ndata: 2\n\n", &[("x", "1\n2")]),
            ("data:a\ndata:  b\n\n", &[("", "a\n b")]),
            (": ping\n\n:\n\nid: 7\nretry: 5\ndata: a\n\n", &[("", "a")]),
            ("event: lonely\n\ndata: a\n\n", &[("", "a")]),
            ("\u{feff}data: a\n\n", &[("", "a")]),
            ("data\n\n", &[("", "")]),
            ("data: [DONE]", &[("", "[DONE]")]),
            ("data: a\n", &[("", "a")]),
            ("data: {\"a\":\"x: y\"}\n\n\n\n", &[("", "{\"a\":\"x: y\"}")]),
            ("", &[]),
            ("\n\n\n", &[]),
            ("<html>no stream</html>", &[]),
        ];
        for (stream, expected) in cases {
            let expected: Vec<_> =
                expected.iter().map(|(e, d)| ((*e).to_owned(), (*d).to_owned())).collect();
            assert_eq!(all(&[stream.as_bytes()]), expected, "{stream:?}");
            // The same byte by byte, and split in two at each position.
            let bytes: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
            assert_eq!(all(&bytes), expected, "byte by byte: {stream:?}");
            for at in 0..=stream.len() {
                let (a, b) = stream.as_bytes().split_at(at);
                assert_eq!(all(&[a, b]), expected, "{at}: {stream:?}");
            }
        }
    }

    #[test]
    fn an_event_may_be_split_anywhere() {
        let pieces = [&b"data: {\"a\""[..], b":1}\r", b"\n\r\n: comment\n\ndata: [DONE]"];
        let data: Vec<_> = all(&pieces).into_iter().map(|(_, data)| data).collect();
        assert_eq!(data, ["{\"a\":1}", "[DONE]"]);
    }

    #[test]
    fn characters_may_be_split_or_invalid() {
        let text = "data: 压缩 🦀 é\n\n";
        for at in 0..=text.len() {
            let (a, b) = text.as_bytes().split_at(at);
            assert_eq!(all(&[a, b]), [(String::new(), "压缩 🦀 é".to_owned())]);
        }
        assert_eq!(all(&[b"data: a\xff\xfeb\n\n"])[0].1, "a\u{fffd}\u{fffd}b");
    }

    #[test]
    fn events_that_are_too_large_are_skipped_and_not_buffered() {
        let mut parser = SseParser::new(1_000);
        let line = [b"data: ".as_slice(), &[b'x'; 600], b"\n"].concat();
        // One long line, and many lines of one event.
        for pieces in [vec![&line[..606]; 2], vec![&line[..]; 2]] {
            for mut piece in pieces {
                assert!(!parser.is_too_large());
                assert_eq!(parser.next(&mut piece), None);
            }
            assert!(parser.is_too_large() && parser.buffered() <= 1_000);
            let mut rest = &b"\n\ndata: a\n\n"[..];
            assert_eq!(parser.next(&mut rest).unwrap().data, None);
            assert_eq!(parser.next(&mut rest).unwrap().data.unwrap(), "a");
        }
    }
}

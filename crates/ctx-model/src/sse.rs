//! Parses server-sent events from byte chunks of any size.

use ctx_core::{Error, ErrorKind, Result};

/// Maximum event size. Providers send tokens one by one; a larger event is invalid.
const LONGEST: usize = 16 * 1024 * 1024;

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SseEvent {
    /// The event type; empty if the stream gives none.
    pub(crate) event: String,
    /// The data lines, joined by line breaks.
    pub(crate) data: String,
}

/// Parses a stream of server-sent events. Lines may end in LF, CR or CRLF; an event may be split
/// anywhere, also inside a character. Comments, ids and retry times are skipped.
#[derive(Debug, Default)]
pub(crate) struct SseParser {
    line: Vec<u8>,
    after_cr: bool,
    begun: bool,
    event: String,
    data: Option<String>,
}

impl SseParser {
    /// Adds the next bytes and returns the events they complete.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Upstream`] if an event is too long.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<SseEvent>> {
        let mut events = Vec::new();
        let mut rest = bytes;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = rest.iter().position(|b| matches!(b, b'\n' | b'\r')) {
            self.line.extend_from_slice(&rest[..end]);
            let is_cr = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if is_cr {
                match rest.first() {
                    Some(b'\n') => rest = &rest[1..],
                    Some(_) => {}
                    None => self.after_cr = true,
                }
            }
            self.check()?;
            events.extend(self.end_line());
        }
        self.line.extend_from_slice(rest);
        self.check()?;
        Ok(events)
    }

    /// Returns the event at the end of a stream without a closing empty line.
    pub(crate) fn finish(&mut self) -> Option<SseEvent> {
        let last = self.end_line();
        last.or_else(|| self.end_event())
    }

    fn check(&self) -> Result<()> {
        if self.line.len() + self.data.as_ref().map_or(0, String::len) <= LONGEST {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Upstream, "an event of the answer is too long")
            .with("bytes", LONGEST)
            .hint("check that the base URL is that of a model provider"))
    }

    fn end_line(&mut self) -> Option<SseEvent> {
        let line = std::mem::take(&mut self.line);
        let mut line = line.as_slice();
        if !self.begun {
            self.begun = true;
            line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        }
        if line.is_empty() {
            return self.end_event();
        }
        let (name, value) = match line.iter().position(|b| *b == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &line[line.len()..]),
        };
        let value = String::from_utf8_lossy(value.strip_prefix(b" ").unwrap_or(value));
        match name {
            b"event" => self.event = value.into_owned(),
            b"data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(&value);
                }
                None => self.data = Some(value.into_owned()),
            },
            // A keep-alive comment, or a field that is not used here.
            _ => {}
        }
        None
    }

    fn end_event(&mut self) -> Option<SseEvent> {
        let event = std::mem::take(&mut self.event);
        self.data.take().map(|data| SseEvent { event, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let mut parser = SseParser::default();
        let mut events = Vec::new();
        for piece in pieces {
            events.extend(parser.push(piece).unwrap());
        }
        events.extend(parser.finish());
        events.into_iter().map(|e| (e.event, e.data)).collect()
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
    fn characters_may_be_cut_and_may_be_broken() {
        let text = "data: 压缩 🦀 é\n\n";
        for at in 0..=text.len() {
            let (a, b) = text.as_bytes().split_at(at);
            assert_eq!(all(&[a, b]), [(String::new(), "压缩 🦀 é".to_owned())]);
        }
        assert_eq!(all(&[b"data: a\xff\xfeb\n\n"])[0].1, "a\u{fffd}\u{fffd}b");
    }

    #[test]
    fn an_event_without_end_is_refused() {
        let block = vec![b'x'; 1024 * 1024];
        let mut parser = SseParser::default();
        parser.push(b"data: ").unwrap();
        let failed = (0..20).find_map(|_| parser.push(&block).err()).unwrap();
        assert_eq!(failed.kind(), ErrorKind::Upstream);
        let mut parser = SseParser::default();
        let line = [b"data: ".as_slice(), &block, b"\n"].concat();
        assert!((0..20).any(|_| parser.push(&line).is_err()), "all lines of an event count");
    }
}

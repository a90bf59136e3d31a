//! Cuts byte chunks into events or values.

use ctx_core::text::Slice;

/// Maximum size of a buffered event or value. A whole answer may contain images.
const LONGEST: usize = 8 * 1024 * 1024;

/// One part of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// An event of a stream.
    Event {
        /// The event type; empty if the stream gives none.
        name: &'a str,
        /// The data lines, joined by line breaks.
        data: &'a str,
    },
    /// A value, or one element of a streamed list.
    Json(&'a str),
    /// An event or value that was skipped because of its size.
    TooLarge,
}

/// Cuts an answer of any form into its parts.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    framing: Framing,
}

#[derive(Debug, Default)]
enum Framing {
    /// Only white space so far.
    #[default]
    Unknown,
    Events(Events),
    Values(Values),
}

impl Pieces {
    pub(super) fn push(&mut self, bytes: &[u8], take: &mut dyn FnMut(Piece<'_>)) {
        let mut bytes = bytes;
        if matches!(self.framing, Framing::Unknown) {
            let blank = |b: &u8| b.is_ascii_whitespace() || matches!(b, 0xEF | 0xBB | 0xBF);
            let Some(first) = bytes.iter().position(|b| !blank(b)) else { return };
            bytes = bytes.slice(first..);
            self.framing = match bytes.first() {
                Some(b'{' | b'[') => Framing::Values(Values::default()),
                _ => Framing::Events(Events::default()),
            };
        }
        match &mut self.framing {
            Framing::Unknown => {}
            Framing::Events(events) => events.push(bytes, take),
            Framing::Values(values) => values.push(bytes, take),
        }
    }

    /// Returns the number of buffered bytes.
    pub(super) fn buffered(&self) -> usize {
        match &self.framing {
            Framing::Unknown => 0,
            Framing::Events(events) => events.line.bytes.len() + events.data.bytes.len(),
            Framing::Values(values) => values.value.bytes.len(),
        }
    }

    pub(super) fn end(&mut self, take: &mut dyn FnMut(Piece<'_>)) {
        if let Framing::Events(events) = &mut self.framing {
            events.end(take);
        }
    }
}

/// A buffer with a size limit.
#[derive(Debug, Default)]
struct Buffer {
    bytes: Vec<u8>,
    is_too_large: bool,
}

impl Buffer {
    fn push(&mut self, bytes: &[u8]) {
        if self.is_too_large || self.bytes.len().saturating_add(bytes.len()) > LONGEST {
            self.is_too_large = true;
            self.bytes = Vec::new();
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.is_too_large = false;
    }
}

/// Server-sent events. Lines end in LF, CR or CRLF.
#[derive(Debug, Default)]
struct Events {
    line: Buffer,
    after_cr: bool,
    name: String,
    data: Buffer,
    has_data: bool,
}

impl Events {
    fn push(&mut self, bytes: &[u8], take: &mut dyn FnMut(Piece<'_>)) {
        let mut rest = bytes;
        while let Some(first) = rest.first() {
            if std::mem::take(&mut self.after_cr) && *first == b'\n' {
                rest = rest.slice(1..);
                continue;
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', rest) else {
                self.line.push(rest);
                return;
            };
            self.line.push(rest.slice(..end));
            self.after_cr = rest.get(end) == Some(&b'\r');
            rest = rest.slice(end + 1..);
            self.end_line(take);
        }
    }

    fn end(&mut self, take: &mut dyn FnMut(Piece<'_>)) {
        if !self.line.bytes.is_empty() || self.line.is_too_large {
            self.end_line(take);
        }
        self.end_event(take);
    }

    fn end_line(&mut self, take: &mut dyn FnMut(Piece<'_>)) {
        let mut line = std::mem::take(&mut self.line);
        if line.is_too_large {
            self.data.push(&[]);
            self.data.is_too_large = true;
            self.has_data = true;
            return;
        }
        let bytes = line.bytes.as_slice();
        if bytes.is_empty() {
            self.end_event(take);
        } else {
            let colon = memchr::memchr(b':', bytes).unwrap_or(bytes.len());
            let (name, value) = (bytes.slice(..colon), bytes.slice(colon..));
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
                _ => {}
            }
        }
        // The next line reuses the buffer.
        line.clear();
        self.line = line;
    }

    fn end_event(&mut self, take: &mut dyn FnMut(Piece<'_>)) {
        if self.has_data {
            let data = String::from_utf8_lossy(&self.data.bytes);
            take(match self.data.is_too_large {
                true => Piece::TooLarge,
                false => Piece::Event { name: &self.name, data: &data },
            });
        }
        self.has_data = false;
        self.data.clear();
        self.name.clear();
    }
}

/// One value, or the elements of a list one by one.
#[derive(Debug, Default)]
struct Values {
    depth: usize,
    is_list: bool,
    in_string: bool,
    after_backslash: bool,
    value: Buffer,
}

impl Values {
    fn push(&mut self, bytes: &[u8], take: &mut dyn FnMut(Piece<'_>)) {
        let mut from = 0;
        for (at, byte) in bytes.iter().enumerate() {
            if self.in_string {
                match byte {
                    _ if std::mem::take(&mut self.after_backslash) => {}
                    b'\\' => self.after_backslash = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'[' if self.depth == 0 && !self.is_list => {
                    self.is_list = true;
                    from = at + 1;
                }
                b'{' | b'[' => {
                    if self.depth == 0 {
                        from = at;
                        self.value.clear();
                    }
                    self.depth += 1;
                }
                b'}' | b']' => {
                    let was_inside = self.depth > 0;
                    self.depth = self.depth.saturating_sub(1);
                    if was_inside && self.depth == 0 {
                        self.value.push(bytes.slice(from..=at));
                        self.give(take);
                        from = at + 1;
                    }
                }
                _ => {}
            }
        }
        if self.depth > 0 {
            self.value.push(bytes.slice(from..));
        }
    }

    fn give(&mut self, take: &mut dyn FnMut(Piece<'_>)) {
        let text = String::from_utf8_lossy(&self.value.bytes);
        take(match self.value.is_too_large {
            true => Piece::TooLarge,
            false => Piece::Json(&text),
        });
        self.value.clear();
    }
}

//! Cuts byte chunks into events or values.

use ctx_core::text::Slice;

use crate::sse::{Buffer, SseEvent, SseParser};

/// Maximum size of a buffered event or value. A whole answer may contain images.
const LONGEST: usize = 8 * 1024 * 1024;

/// One part of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::wire) enum Piece<'a> {
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
pub(in crate::wire) struct Pieces {
    framing: Framing,
}

#[derive(Debug, Default)]
enum Framing {
    /// Only white space so far.
    #[default]
    Unknown,
    Events(SseParser),
    Values(Values),
}

impl Pieces {
    pub(in crate::wire) fn push(&mut self, bytes: &[u8], take: &mut dyn FnMut(Piece<'_>)) {
        let mut bytes = bytes;
        if matches!(self.framing, Framing::Unknown) {
            let blank = |b: &u8| b.is_ascii_whitespace() || matches!(b, 0xEF | 0xBB | 0xBF);
            let Some(first) = bytes.iter().position(|b| !blank(b)) else { return };
            bytes = bytes.slice(first..);
            self.framing = match bytes.first() {
                Some(b'{' | b'[') => Framing::Values(Values::new()),
                _ => Framing::Events(SseParser::new(LONGEST)),
            };
        }
        match &mut self.framing {
            Framing::Unknown => {}
            Framing::Events(events) => {
                while let Some(event) = events.next(&mut bytes) {
                    take_event(&event, take);
                }
            }
            Framing::Values(values) => values.push(bytes, take),
        }
    }

    /// Returns the number of buffered bytes.
    pub(super) fn buffered(&self) -> usize {
        match &self.framing {
            Framing::Unknown => 0,
            Framing::Events(events) => events.buffered(),
            Framing::Values(values) => values.value.bytes.len(),
        }
    }

    pub(in crate::wire) fn end(&mut self, take: &mut dyn FnMut(Piece<'_>)) {
        if let Framing::Events(events) = &mut self.framing {
            events.finish().iter().for_each(|event| take_event(event, take));
        }
    }
}

fn take_event(event: &SseEvent<'_>, take: &mut dyn FnMut(Piece<'_>)) {
    take(match &event.data {
        Some(data) => Piece::Event { name: event.name, data },
        None => Piece::TooLarge,
    });
}

/// One value, or the elements of a list one by one.
#[derive(Debug)]
struct Values {
    depth: usize,
    is_list: bool,
    in_string: bool,
    after_backslash: bool,
    value: Buffer,
}

impl Values {
    fn new() -> Self {
        let value = Buffer::new(LONGEST);
        Self { depth: 0, is_list: false, in_string: false, after_backslash: false, value }
    }

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

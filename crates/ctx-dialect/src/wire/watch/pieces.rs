//! Cuts byte chunks into events or values.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ctx_core::text::Slice;

use crate::json::Object;
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
    Frames(Frames),
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
                // A frame begins with its length, which is less than 16 MiB.
                Some(0) => Framing::Frames(Frames(Buffer::new(LONGEST))),
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
            Framing::Frames(frames) => frames.push(bytes, take),
        }
    }

    /// Returns the number of buffered bytes.
    pub(super) fn buffered(&self) -> usize {
        match &self.framing {
            Framing::Unknown => 0,
            Framing::Events(events) => events.buffered(),
            Framing::Values(values) => values.value.bytes.len(),
            Framing::Frames(frames) => frames.0.bytes.len(),
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

/// The frames of an event stream of AWS.
#[derive(Debug)]
struct Frames(Buffer);

impl Frames {
    /// The sizes of both lengths with their checksum, and of the checksum at the end.
    const HEAD: usize = 12;
    const END: usize = 4;

    fn push(&mut self, bytes: &[u8], take: &mut dyn FnMut(Piece<'_>)) {
        let was_too_large = self.0.is_too_large;
        self.0.push(bytes);
        if self.0.is_too_large && !was_too_large {
            take(Piece::TooLarge);
        }
        while let [a, b, c, d, e, f, g, h, ..] = self.0.bytes[..] {
            let length = |bytes| usize::try_from(u32::from_be_bytes(bytes)).unwrap_or(usize::MAX);
            let (all, headers) = (length([a, b, c, d]), length([e, f, g, h]));
            if self.0.bytes.len() < all.max(Self::HEAD + Self::END) {
                return;
            }
            let frame: Vec<u8> = self.0.bytes.drain(..all.max(Self::HEAD + Self::END)).collect();
            let rest = frame.slice(Self::HEAD..all.saturating_sub(Self::END).max(Self::HEAD));
            let (headers, payload) = rest.split_at(headers.min(rest.len()));
            take_frame(headers, &String::from_utf8_lossy(payload), take);
        }
    }
}

/// Reads the payload of a frame: an event, or an object with one in base64.
fn take_frame(headers: &[u8], payload: &str, take: &mut dyn FnMut(Piece<'_>)) {
    let is_error = memchr::memmem::find(headers, b":exception-type").is_some();
    let bytes = Object::parse(payload).ok().and_then(|object| object.owned("bytes"));
    let inner = bytes.and_then(|bytes| String::from_utf8(STANDARD.decode(bytes).ok()?).ok());
    let name = if is_error { "error" } else { "" };
    take(Piece::Event { name, data: inner.as_deref().unwrap_or(payload) });
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

//! Frames: what goes over the wire.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Length, command, request number.
const HEAD: usize = 9;

/// Why bytes are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// The frame says that it is this long.
    TooLong(usize),
    /// The body ended in the middle of a field.
    Short,
    /// A text is not UTF-8.
    NotText,
    /// A number is out of its range.
    Range,
}

/// One request or answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The command, or the code of an answer.
    pub command: u8,
    /// Chosen by the client, repeated in the answer.
    pub request: u32,
    /// What follows.
    pub body: Bytes,
}

impl Frame {
    /// The first frame in `bytes` and its length, or `None` if it is not all there.
    pub fn parse(bytes: &[u8], longest: usize) -> Result<Option<(Self, usize)>, FrameError> {
        if bytes.len() < HEAD {
            return Ok(None);
        }
        let mut head = &bytes[..HEAD];
        let len = head.get_u32_le() as usize;
        if len > longest {
            return Err(FrameError::TooLong(len));
        }
        if bytes.len() < HEAD + len {
            return Ok(None);
        }
        let (command, request) = (head.get_u8(), head.get_u32_le());
        let body = Bytes::copy_from_slice(&bytes[HEAD..HEAD + len]);
        Ok(Some((Self { command, request, body }, HEAD + len)))
    }

    /// Writes an answer.
    pub fn put(out: &mut BytesMut, code: u8, request: u32, body: &[u8]) {
        out.put_u32_le(body.len() as u32);
        out.put_u8(code);
        out.put_u32_le(request);
        out.put_slice(body);
    }
}

/// Reads the fields of a body one after the other.
pub struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// The fields of `body`.
    pub fn new(body: &'a [u8]) -> Self {
        Self(body)
    }

    /// A number of one byte.
    pub fn u8(&mut self) -> Result<u8, FrameError> {
        if self.0.is_empty() { Err(FrameError::Short) } else { Ok(self.0.get_u8()) }
    }

    /// A number of four bytes.
    pub fn u32(&mut self) -> Result<u32, FrameError> {
        if self.0.len() < 4 { Err(FrameError::Short) } else { Ok(self.0.get_u32_le()) }
    }

    /// A number of eight bytes.
    pub fn u64(&mut self) -> Result<u64, FrameError> {
        if self.0.len() < 8 { Err(FrameError::Short) } else { Ok(self.0.get_u64_le()) }
    }

    /// A text with its length before it.
    pub fn text(&mut self) -> Result<&'a str, FrameError> {
        if self.0.len() < 2 {
            return Err(FrameError::Short);
        }
        let len = self.0.get_u16_le() as usize;
        if self.0.len() < len {
            return Err(FrameError::Short);
        }
        let (text, rest) = self.0.split_at(len);
        self.0 = rest;
        std::str::from_utf8(text).map_err(|_| FrameError::NotText)
    }

    /// All that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_comes_back() {
        let mut out = BytesMut::new();
        Frame::put(&mut out, 3, 77, b"body");
        let (frame, used) = Frame::parse(&out, 100).unwrap().unwrap();
        assert_eq!((frame.command, frame.request, &frame.body[..], used), (3, 77, &b"body"[..], 13));
    }

    #[test]
    fn half_a_frame_waits() {
        let mut out = BytesMut::new();
        Frame::put(&mut out, 3, 77, b"body");
        for end in 0..out.len() {
            assert_eq!(Frame::parse(&out[..end], 100), Ok(None));
        }
    }

    #[test]
    fn a_long_frame_is_refused_before_it_is_read() {
        let mut out = BytesMut::new();
        Frame::put(&mut out, 3, 77, &[0; 101]);
        assert_eq!(Frame::parse(&out[..9], 100), Err(FrameError::TooLong(101)));
    }
}

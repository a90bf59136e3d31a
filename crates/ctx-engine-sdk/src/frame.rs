//! Messages on a pipe. JSON is a line. MessagePack follows the byte `0xC1`, which neither
//! encoding uses, and its length as a big-endian `u32`.

use std::io::{self, BufRead, Read, Write};

use crate::protocol::Encoding;

/// The first byte before MessagePack.
pub const MARK: u8 = 0xC1;

/// Memory reserved for a message before its bytes arrive, at most.
const MAX_RESERVED: usize = 1 << 20;

/// What was read from a pipe.
#[derive(Debug, PartialEq, Eq)]
pub enum Received {
    /// A message.
    Message(Vec<u8>),
    /// A message over the limit. Its rest is not read.
    TooLarge,
    /// The pipe ended, with these bytes of an unfinished message.
    End(Vec<u8>),
}

/// Reads the next message of at most `limit` bytes. Blank lines are skipped.
pub fn read(input: &mut impl BufRead, limit: usize) -> Received {
    let most = u64::try_from(limit).unwrap_or(u64::MAX);
    loop {
        let mut first = [0];
        if input.read_exact(&mut first).is_err() {
            return Received::End(Vec::new());
        }
        let mut line = first.to_vec();
        match first {
            [MARK] => return read_packed(input, limit),
            [b'\n'] => continue,
            // With the first byte, one more than allowed: a line that is too long differs from one
            // that just fits.
            _ => drop(input.take(most).read_until(b'\n', &mut line)),
        }
        match line.last() {
            Some(b'\n') if line.trim_ascii().is_empty() => {}
            Some(b'\n') => return Received::Message(line),
            _ if line.len() > limit => return Received::TooLarge,
            _ => return Received::End(line),
        }
    }
}

fn read_packed(input: &mut impl BufRead, limit: usize) -> Received {
    let mut length = [0; 4];
    if input.read_exact(&mut length).is_err() {
        return Received::End(vec![MARK]);
    }
    let bytes = u32::from_be_bytes(length);
    let length = usize::try_from(bytes).unwrap_or(usize::MAX);
    if length > limit {
        return Received::TooLarge;
    }
    let mut message = Vec::with_capacity(length.min(MAX_RESERVED));
    match input.take(bytes.into()).read_to_end(&mut message) {
        Ok(read) if read == length => Received::Message(message),
        _ => Received::End(vec![MARK]),
    }
}

/// Writes a message in its [encoding](Encoding::of).
///
/// # Errors
///
/// If writing fails, or the message is larger than 4 GiB.
pub fn write(output: &mut impl Write, mut message: Vec<u8>) -> io::Result<()> {
    match Encoding::of(&message) {
        Encoding::Json => {
            // Line ends occur only between tokens.
            if message.contains(&b'\n') || message.contains(&b'\r') {
                for byte in &mut message {
                    if matches!(byte, b'\n' | b'\r') {
                        *byte = b' ';
                    }
                }
            }
            message.push(b'\n');
        }
        Encoding::MessagePack => {
            let length = u32::try_from(message.len()).map_err(io::Error::other)?;
            message.splice(..0, [MARK].into_iter().chain(length.to_be_bytes()));
        }
    }
    output.write_all(&message)?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut pipe: &[u8], limit: usize) -> Vec<Received> {
        let mut all = Vec::new();
        while !matches!(all.last(), Some(Received::End(_) | Received::TooLarge)) {
            all.push(read(&mut pipe, limit));
        }
        all
    }

    fn message(bytes: &[u8]) -> Received {
        Received::Message(bytes.to_vec())
    }

    #[test]
    fn both_encodings_may_alternate_on_a_pipe() {
        let mut pipe = Vec::new();
        for bytes in [&b"{\"a\":\n1}"[..], b"\x81\xa1\n\xc1", b"{}", b"\x80"] {
            write(&mut pipe, bytes.to_vec()).unwrap();
        }
        let read = [
            message(b"{\"a\": 1}\n"),
            message(b"\x81\xa1\n\xc1"),
            message(b"{}\n"),
            message(b"\x80"),
            Received::End(Vec::new()),
        ];
        assert_eq!(all(&pipe, 10), read);
    }

    #[test]
    fn a_message_over_the_limit_is_not_read() {
        let line = [message(b"12345\n"), Received::TooLarge];
        assert_eq!(all(b"12345\n \r\n\n123456\n", 5), line);
        let packed = [message(b"\x8012345"), Received::TooLarge];
        assert_eq!(all(b"\xc1\0\0\0\x06\x8012345\xc1\0\0\0\x07\x80123456", 6), packed);
        assert_eq!(all(b"\xc1\xff\xff\xff\xff\x80", 6), [Received::TooLarge]);
    }

    #[test]
    fn an_unfinished_message_is_no_message() {
        assert_eq!(all(b"1234", 5), [Received::End(b"1234".to_vec())]);
        for torn in [&b"\xc1"[..], b"\xc1\0\0", b"\xc1\0\0\0\x02\x80", b"\xc1\xff\xff\xff\xff\x80"]
        {
            assert_eq!(all(torn, usize::MAX), [Received::End(vec![MARK])], "{torn:?}");
        }
    }
}

//! Keeps the beginning and the end of a command's output.

use std::collections::VecDeque;

/// Number of bytes kept of the beginning and of the end.
const HEAD: usize = 128 << 10;
const TAIL: usize = 128 << 10;

/// Reads output in pieces, and keeps its beginning and its end.
#[derive(Default)]
pub(super) struct BoundedOutput {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    dropped: u64,
    pub(super) printed: u64,
}

impl BoundedOutput {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.printed += bytes.len() as u64;
        let room = HEAD.saturating_sub(self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.head.extend_from_slice(first);
        // At most the last `TAIL` bytes of one piece are kept.
        let skipped = rest.len().saturating_sub(TAIL);
        let rest = &rest[skipped..];
        let over = (self.tail.len() + rest.len()).saturating_sub(TAIL);
        self.tail.drain(..over);
        self.tail.extend(rest);
        self.dropped += (skipped + over) as u64;
    }

    /// Returns the number of bytes kept, if some were dropped.
    pub(super) fn cut_to(&self) -> Option<u64> {
        (self.dropped > 0).then(|| self.printed - self.dropped)
    }

    /// Returns the text, with a line in place of dropped bytes.
    pub(super) fn into_text(mut self) -> String {
        let tail = self.tail.make_contiguous();
        if self.dropped == 0 {
            self.head.extend_from_slice(tail);
            return String::from_utf8_lossy(&self.head).into_owned();
        }
        format!(
            "{}\n[{} bytes omitted]\n{}",
            String::from_utf8_lossy(&self.head),
            self.dropped,
            String::from_utf8_lossy(tail),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_and_the_end_of_endless_output_are_kept() {
        let mut kept = BoundedOutput::default();
        for at in 0..200_000 {
            kept.push(format!("line {at}\n").as_bytes());
        }
        kept.push(&[b'x'; TAIL + 10]);
        kept.push(b"the end");
        let text = kept.into_text();
        assert!(text.starts_with("line 0\n") && text.ends_with("xxxthe end"));
        assert!(text.contains(" bytes omitted]\n"));
        assert!(text.len() < HEAD + TAIL + 100, "{}", text.len());
    }

    #[test]
    fn short_output_is_kept_whole_in_pieces_of_any_size() {
        let mut kept = BoundedOutput::default();
        for byte in "Grüße\n".bytes() {
            kept.push(&[byte]);
        }
        assert_eq!(kept.into_text(), "Grüße\n");
    }
}

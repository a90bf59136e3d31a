//! What a command printed, as much of it as is kept.

use std::collections::VecDeque;

/// How many bytes of the beginning and of the end are kept.
const HEAD: usize = 128 << 10;
const TAIL: usize = 128 << 10;

/// Takes output in pieces, and keeps its beginning and its end.
#[derive(Default)]
pub(super) struct Kept {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: u64,
    printed: u64,
}

impl Kept {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.printed += bytes.len() as u64;
        let room = HEAD.saturating_sub(self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.head.extend_from_slice(first);
        // Of one piece, no more than the end can stay.
        let skipped = rest.len().saturating_sub(TAIL);
        let rest = &rest[skipped..];
        let over = (self.tail.len() + rest.len()).saturating_sub(TAIL);
        self.tail.drain(..over);
        self.tail.extend(rest);
        self.left_out += (skipped + over) as u64;
    }

    /// How many bytes there were.
    pub(super) fn printed(&self) -> u64 {
        self.printed
    }

    /// How many bytes are kept, where that is not all of them.
    pub(super) fn cut_to(&self) -> Option<u64> {
        (self.left_out > 0).then(|| self.printed - self.left_out)
    }

    /// As text, with a line where something is left out.
    pub(super) fn into_text(mut self) -> String {
        let tail = self.tail.make_contiguous();
        if self.left_out == 0 {
            self.head.extend_from_slice(tail);
            return String::from_utf8_lossy(&self.head).into_owned();
        }
        format!(
            "{}\n[{} bytes are left out]\n{}",
            String::from_utf8_lossy(&self.head),
            self.left_out,
            String::from_utf8_lossy(tail),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_endless_output_both_ends_stay() {
        let mut kept = Kept::default();
        for at in 0..200_000 {
            kept.push(format!("line {at}\n").as_bytes());
        }
        kept.push(&[b'x'; TAIL + 10]);
        kept.push(b"the end");
        let text = kept.into_text();
        assert!(text.starts_with("line 0\n") && text.ends_with("xxxthe end"));
        assert!(text.contains(" bytes are left out]\n"));
        assert!(text.len() < HEAD + TAIL + 100, "{}", text.len());
    }

    #[test]
    fn short_output_stays_whole_however_it_comes() {
        let mut kept = Kept::default();
        for byte in "Grüße\n".bytes() {
            kept.push(&[byte]);
        }
        assert_eq!(kept.into_text(), "Grüße\n");
    }
}

//! Excerpts of long messages: the beginning and the passage about the query.

use std::ops::Range;

use ctx_core::text::{Slice, head_chars, word_end, word_start};

use ctx_search::Segment;
use ctx_search::search::{Need, best_piece};

/// Shorter messages are shown whole.
const WHOLE_CHARS: usize = 2_400;

/// The number of characters shown from the beginning.
const HEAD_CHARS: usize = 200;

/// The number of characters shown before and after the best piece.
const MARGIN_CHARS: usize = 600;

const OMITTED: &str = "[...]";

/// The number of bytes of one message that are searched for the best piece.
const SEARCHED: usize = 1 << 20;

/// The limit for all messages of a query. The best are searched first.
const SEARCHED_IN_ALL: usize = 8 << 20;

/// The number of bytes shown of a message: callers that cut it to a budget need less.
const SHOWN: usize = 256 << 10;

/// The best piece of a message, and how much of the query it contains.
#[derive(Clone, Debug, Default)]
pub(super) struct BestPiece {
    pub(super) held: f32,
    at: Range<usize>,
}

/// Finds the best pieces, within the limits of a turn.
pub(super) struct Reading<'a> {
    needs: &'a [Need],
    left: usize,
}

impl<'a> Reading<'a> {
    pub(super) fn new(needs: &'a [Need]) -> Self {
        Self { needs, left: SEARCHED_IN_ALL }
    }

    /// Returns the best piece of a message.
    pub(super) fn place(&mut self, segment: &Segment) -> BestPiece {
        let most = segment.content.len().min(SEARCHED).min(self.left);
        self.left -= most;
        let (held, at) = best_piece(self.needs, segment, most);
        BestPiece { held, at }
    }
}

/// Returns a message, or the best excerpt of a long one. Truncating in the middle would keep the
/// ends, but the relevant text may be anywhere.
pub(super) fn excerpt(content: &str, place: impl FnOnce() -> BestPiece) -> String {
    if content.char_indices().nth(WHOLE_CHARS).is_none() {
        return content.to_owned();
    }
    let place = place();
    match place.held > 0.0 {
        true => around(content, &place.at),
        false => ends(content),
    }
}

/// Returns a message, or both ends of a very long one.
pub(super) fn ends(content: &str) -> String {
    if content.len() <= SHOWN {
        return content.to_owned();
    }
    let head = word_end(content, SHOWN / 2);
    let tail = word_start(content, content.len() - SHOWN / 2);
    let parts = (content.slice(..head), content.slice(tail..));
    format!("{}\n{OMITTED}\n{}", parts.0, parts.1)
}

fn around(content: &str, best: &Range<usize>) -> String {
    let before = content.slice(..best.start);
    let after = content.slice(best.end..);
    let start = before.char_indices().rev().nth(MARGIN_CHARS).map_or(0, |(at, _)| at);
    let start = word_start(content, start);
    let end = word_end(content, best.end + head_chars(after, MARGIN_CHARS).len());
    let head = word_end(content, head_chars(content, HEAD_CHARS).len());
    let mut text = String::new();
    let start = match start > head {
        true => {
            text.push_str(content.slice(..head));
            text.push_str(&format!("\n{OMITTED}\n"));
            start
        }
        false => 0,
    };
    text.push_str(content.slice(start..end));
    if end < content.len() {
        text.push_str(&format!("\n{OMITTED}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_has_the_beginning_the_best_piece_and_omission_marks() {
        let content = format!("{}needle{}", "ä".repeat(5_000), "ö".repeat(5_000));
        let text = around(&content, &(10_000..10_006));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.len(), lines[1], lines[3]), (4, OMITTED, OMITTED));
        assert_eq!((lines[0].chars().count(), lines[2].chars().count()), (HEAD_CHARS, 1_207));
        assert!(lines[2].contains("needle"));
        assert_eq!(around(&content, &(0..4)).matches(OMITTED).count(), 1);
        let end = around(&content, &(content.len() - 2..content.len()));
        assert!(end.ends_with('ö') && end.matches(OMITTED).count() == 1, "{end}");
        assert_eq!(around("short", &(0..5)), "short");
    }

    #[test]
    fn a_very_long_message_without_a_match_shows_both_ends() {
        let content = format!("begin {} end", "ä".repeat(1 << 20));
        let text = excerpt(&content, BestPiece::default);
        assert!(text.starts_with("begin ä") && text.ends_with("ä end") && text.len() < SHOWN + 9);
        assert_eq!(ends(&content), text);
        assert_eq!(ends("short"), "short");
    }
}

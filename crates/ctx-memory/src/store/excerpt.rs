//! What is shown of a long message: how it begins, and the place that is about the query.

use std::ops::Range;

use ctx_core::text::{word_end, word_start};

use crate::Segment;
use crate::search::{Need, best_piece};

/// Shorter messages are shown as they are.
const WHOLE_CHARS: usize = 2_400;

/// So much of the beginning tells what it is.
const HEAD_CHARS: usize = 200;

/// So much is shown before and after the best piece.
const MARGIN_CHARS: usize = 600;

const OMITTED: &str = "[...]";

/// No more of one message is searched for the place that fits.
const SEARCHED: usize = 1 << 20;

/// Nor of all messages of a question. The best come first.
const SEARCHED_IN_ALL: usize = 8 << 20;

/// No more of a message is shown: whoever cuts it to a budget has room for less.
const SHOWN: usize = 256 << 10;

/// Where a message fits best, and how much of what is needed stands there.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    pub(super) held: f32,
    at: Range<usize>,
}

/// Looks for the places that fit, in as much as a turn has time for.
pub(super) struct Reading<'a> {
    needs: &'a [Need],
    left: usize,
}

impl<'a> Reading<'a> {
    pub(super) fn new(needs: &'a [Need]) -> Self {
        Self { needs, left: SEARCHED_IN_ALL }
    }

    /// Where a message fits best.
    pub(super) fn place(&mut self, segment: &Segment) -> Place {
        let most = segment.content.len().min(SEARCHED).min(self.left);
        self.left -= most;
        let (held, at) = best_piece(self.needs, segment, most);
        Place { held, at }
    }
}

/// A message, or of a long one what fits best. Whoever cuts it to a budget would keep its ends, and
/// what was asked for may stand anywhere.
pub(super) fn excerpt(content: &str, place: impl FnOnce() -> Place) -> String {
    if content.char_indices().nth(WHOLE_CHARS).is_none() {
        return content.to_owned();
    }
    let place = place();
    match place.held > 0.0 {
        true => around(content, &place.at),
        false => ends(content),
    }
}

/// A message, or of a very long one both its ends.
pub(super) fn ends(content: &str) -> String {
    if content.len() <= SHOWN {
        return content.to_owned();
    }
    let head = word_end(content, SHOWN / 2);
    let tail = word_start(content, content.len() - SHOWN / 2);
    let parts = (content.get(..head).unwrap_or_default(), content.get(tail..).unwrap_or_default());
    format!("{}\n{OMITTED}\n{}", parts.0, parts.1)
}

fn around(content: &str, best: &Range<usize>) -> String {
    let before = content.get(..best.start).unwrap_or_default();
    let after = content.get(best.end..).unwrap_or_default();
    let start = before.char_indices().rev().nth(MARGIN_CHARS).map_or(0, |(at, _)| at);
    let start = word_start(content, start);
    let end = after.char_indices().nth(MARGIN_CHARS).map_or(content.len(), |(at, _)| best.end + at);
    let end = word_end(content, end);
    let head = content.char_indices().nth(HEAD_CHARS).map_or(content.len(), |(at, _)| at);
    let head = word_end(content, head);
    let mut text = String::new();
    let start = match start > head {
        true => {
            text.push_str(content.get(..head).unwrap_or_default());
            text.push_str(&format!("\n{OMITTED}\n"));
            start
        }
        false => 0,
    };
    text.push_str(content.get(start..end).unwrap_or_default());
    if end < content.len() {
        text.push_str(&format!("\n{OMITTED}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_stands_between_the_beginning_and_signs_of_what_is_left_out() {
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
    fn of_a_very_long_message_that_fits_nowhere_both_ends_are_shown() {
        let content = format!("begin {} end", "ä".repeat(1 << 20));
        let text = excerpt(&content, Place::default);
        assert!(text.starts_with("begin ä") && text.ends_with("ä end") && text.len() < SHOWN + 9);
        assert_eq!(ends(&content), text);
        assert_eq!(ends("short"), "short");
    }
}

//! What is shown of a long message: how it begins, and the place that is about the query.

use std::ops::Range;

use crate::Segment;
use crate::search::{Need, best_piece};

/// Shorter messages are shown as they are.
const WHOLE_CHARS: usize = 2_400;

/// So much of the beginning tells what it is.
const HEAD_CHARS: usize = 200;

/// So much is shown before and after the best piece.
const MARGIN_CHARS: usize = 600;

const OMITTED: &str = "[...]";

/// A message, or of a long one what fits best. Whoever cuts it to a budget would keep its ends, and
/// what was asked for may stand anywhere.
pub(super) fn excerpt(segment: &Segment, needs: &[Need]) -> String {
    let content = &segment.content;
    if content.char_indices().nth(WHOLE_CHARS).is_none() {
        return content.clone();
    }
    let (held, best) = best_piece(needs, segment);
    match held > 0.0 {
        true => around(content, &best),
        false => content.clone(),
    }
}

fn around(content: &str, best: &Range<usize>) -> String {
    let before = content.get(..best.start).unwrap_or_default();
    let after = content.get(best.end..).unwrap_or_default();
    let start = before.char_indices().rev().nth(MARGIN_CHARS).map_or(0, |(at, _)| at);
    let end = after.char_indices().nth(MARGIN_CHARS).map_or(content.len(), |(at, _)| best.end + at);
    let head = content.char_indices().nth(HEAD_CHARS).map_or(content.len(), |(at, _)| at);
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
}

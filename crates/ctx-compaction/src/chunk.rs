//! Splits history into chunks that fit a model.
//!
//! The functions take sizes and return ranges. With groups, a tool call is never separated from its
//! results: the messages of a group are one *unit*.

use std::collections::HashMap;
use std::ops::Range;

use ctx_core::Tokens;

use crate::{ChunkRatio, SAFETY_MARGIN};

/// The maximum share of a context window for a chunk.
pub(crate) const BASE_CHUNK_RATIO: f64 = 0.4;

/// The minimum share of a context window for a chunk, however large the messages are.
pub(crate) const MIN_CHUNK_RATIO: f64 = 0.15;

/// Reserved in each summary request for the instructions and the answer.
pub const SUMMARIZATION_OVERHEAD_TOKENS: Tokens = Tokens(4_096);

/// A message over this share of a context window, with [`SAFETY_MARGIN`], is not summarised.
pub(crate) const OVERSIZED_SHARE: f64 = 0.5;

/// Whether a message is too large to be summarised by a model with this context window.
pub(crate) fn is_oversized_for_summary(size: Tokens, window: Tokens) -> bool {
    f64::from(size.0) * SAFETY_MARGIN > f64::from(window.0) * OVERSIZED_SHARE
}

impl ChunkRatio {
    /// Returns the share of the context window for a chunk of messages of these sizes, from
    /// 0.15 to 0.4: the larger the messages, the smaller the share.
    ///
    /// ```
    /// use ctx_compaction::ChunkRatio;
    /// use ctx_core::Tokens;
    ///
    /// let ratio = ChunkRatio::Pi.of(&[Tokens(16_000); 5], Tokens(200_000));
    /// assert!((ratio - 0.32).abs() < 1e-9);
    /// ```
    #[must_use]
    pub fn of(self, sizes: &[Tokens], window: Tokens) -> f64 {
        if sizes.is_empty() || window == Tokens::ZERO {
            return BASE_CHUNK_RATIO;
        }
        let average = total(sizes) as f64 / sizes.len() as f64;
        let share = average / f64::from(window.0);
        let reduction = match self {
            Self::Pi => share,
            Self::Ponybunny => match share * SAFETY_MARGIN {
                large if large > 0.1 => large * 2.0,
                _ => 0.0,
            },
        };
        (BASE_CHUNK_RATIO - reduction).max(MIN_CHUNK_RATIO)
    }
}

/// Splits greedily into chunks of at most `max` tokens, each message counted with [`SAFETY_MARGIN`]
/// (`chunkMessagesByMaxTokens`).
///
/// A unit larger than `max` is a chunk of its own. Call again without groups (`&[]`) to split such
/// a chunk by message; then only a single message can be larger than `max`.
#[must_use]
pub fn chunk_by_max_tokens(sizes: &[Tokens], groups: &[u32], max: Tokens) -> Vec<Range<usize>> {
    let max = f64::from(max.0);
    let mut chunks = Vec::new();
    let (mut start, mut sum) = (0, 0.0);
    for unit in units(sizes.len(), groups) {
        let size = total(&sizes[unit.clone()]) as f64 * SAFETY_MARGIN;
        if unit.start > start && sum + size > max {
            chunks.push(start..unit.start);
            (start, sum) = (unit.start, 0.0);
        }
        sum += size;
    }
    if start < sizes.len() {
        chunks.push(start..sizes.len());
    }
    chunks
}

/// Splits into `parts` non-empty parts of about equal size, as far as units allow
/// (`splitMessagesByTokenShare`). Fewer than `min_messages` messages are not split.
#[must_use]
pub fn split_by_token_share(
    sizes: &[Tokens],
    groups: &[u32],
    parts: usize,
    min_messages: usize,
) -> Vec<Range<usize>> {
    if sizes.is_empty() {
        return Vec::new();
    }
    let parts = if sizes.len() < min_messages { 1 } else { parts.clamp(1, sizes.len()) };
    let all = total(sizes) as f64;
    let mut pieces = Vec::new();
    let (mut start, mut sum) = (0, 0.0);
    for unit in units(sizes.len(), groups) {
        let size = total(&sizes[unit.clone()]) as f64;
        // A part ends where its share of the total is nearest: before or after the unit.
        let share = all * (pieces.len() + 1) as f64 / parts as f64;
        if unit.start > start && pieces.len() + 1 < parts && sum + size / 2.0 > share {
            pieces.push(start..unit.start);
            start = unit.start;
        }
        sum += size;
    }
    pieces.push(start..sizes.len());
    pieces
}

/// Returns the shortest ranges that can be separated from each other.
fn units(len: usize, groups: &[u32]) -> Vec<Range<usize>> {
    let mut start = 0;
    let mut units = Vec::new();
    for (at, free) in boundaries(len, groups).into_iter().enumerate().skip(1) {
        if free {
            units.push(start..at);
            start = at;
        }
    }
    if start < len {
        units.push(start..len);
    }
    units
}

/// Returns for each position whether no group spans it. Groups are ignored if their count is not
/// `len`.
pub(crate) fn boundaries(len: usize, groups: &[u32]) -> Vec<bool> {
    let mut free = vec![true; len];
    if groups.len() != len {
        return free;
    }
    let last: HashMap<u32, usize> = groups.iter().enumerate().map(|(at, &g)| (g, at)).collect();
    let mut reach = 0;
    for (at, group) in groups.iter().enumerate() {
        free[at] = at == 0 || reach < at;
        reach = reach.max(last.get(group).copied().unwrap_or(at));
    }
    free
}

fn total(sizes: &[Tokens]) -> u64 {
    sizes.iter().map(|size| size.get()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(sizes: &[u32]) -> Vec<Tokens> {
        sizes.iter().copied().map(Tokens).collect()
    }

    type Pairs = &'static [(usize, usize)];

    fn pairs(ranges: &[Range<usize>]) -> Vec<(usize, usize)> {
        ranges.iter().map(|range| (range.start, range.end)).collect()
    }

    #[test]
    fn the_adaptive_ratio_is_that_of_each_system() {
        // Size of one message, number of messages, window, expected ratio.
        let cases = [
            (ChunkRatio::Pi, 16_000, 5, 200_000, 0.32),
            (ChunkRatio::Pi, 100, 50, 200_000, 0.3995),
            (ChunkRatio::Pi, 60_000, 3, 200_000, 0.15),
            (ChunkRatio::Ponybunny, 1_000, 50, 100_000, 0.4),
            // 8,000 x 1.2 is 9.6 % of the window, 10,000 x 1.2 is 12 %.
            (ChunkRatio::Ponybunny, 8_000, 9, 100_000, 0.4),
            (ChunkRatio::Ponybunny, 10_000, 9, 100_000, 0.16),
            (ChunkRatio::Ponybunny, 60_000, 2, 100_000, 0.15),
        ];
        for (formula, size, count, window, expected) in cases {
            let ratio = formula.of(&vec![Tokens(size); count], Tokens(window));
            assert!((ratio - expected).abs() < 1e-9, "{formula:?} {size} of {window}: {ratio}");
        }
        assert!((ChunkRatio::Pi.of(&[], Tokens(9)) - BASE_CHUNK_RATIO).abs() < 1e-9);
        assert!((ChunkRatio::Pi.of(&[Tokens(1)], Tokens(0)) - BASE_CHUNK_RATIO).abs() < 1e-9);
    }

    #[test]
    fn a_message_over_half_of_the_window_is_oversized() {
        assert!(!is_oversized_for_summary(Tokens(80_000), Tokens(200_000)));
        assert!(is_oversized_for_summary(Tokens(84_000), Tokens(200_000)));
    }

    #[test]
    fn chunks_are_filled_greedily_with_the_margin() {
        let cases: [(&[u32], u32, Pairs); 5] = [
            (&[], 100, &[]),
            // 4 x 25 x 1.2 is 120.
            (&[25, 25, 25, 25], 100, &[(0, 3), (3, 4)]),
            (&[25, 25, 25, 25], 120, &[(0, 4)]),
            (&[10, 500, 10, 10], 100, &[(0, 1), (1, 2), (2, 4)]),
            (&[500, 500], 100, &[(0, 1), (1, 2)]),
        ];
        for (sizes, max, expected) in cases {
            assert_eq!(pairs(&chunk_by_max_tokens(&spans(sizes), &[], Tokens(max))), expected);
        }
    }

    #[test]
    fn a_call_is_not_parted_from_its_results() {
        let sizes = spans(&[10, 40, 40, 40, 10]);
        let groups = [0, 1, 1, 1, 2];
        assert_eq!(
            pairs(&chunk_by_max_tokens(&sizes, &groups, Tokens(100))),
            [(0, 1), (1, 4), (4, 5)]
        );
        assert_eq!(pairs(&split_by_token_share(&sizes, &groups, 2, 4)), [(0, 4), (4, 5)]);
        // A late result keeps everything in between together.
        assert_eq!(
            pairs(&chunk_by_max_tokens(&sizes, &[0, 1, 2, 1, 3], Tokens(50))),
            [(0, 1), (1, 4), (4, 5)]
        );
    }

    #[test]
    fn parts_are_of_about_equal_size() {
        let cases: [(&[u32], usize, usize, Pairs); 6] = [
            (&[], 2, 4, &[]),
            (&[10, 10, 10], 2, 4, &[(0, 3)]),
            (&[10, 10, 10, 10], 2, 4, &[(0, 2), (2, 4)]),
            (&[100, 1, 1, 1], 2, 4, &[(0, 1), (1, 4)]),
            (&[1, 1, 1, 100], 2, 4, &[(0, 3), (3, 4)]),
            (&[0, 0, 0, 0], 0, 4, &[(0, 4)]),
        ];
        for (sizes, parts, min, expected) in cases {
            assert_eq!(pairs(&split_by_token_share(&spans(sizes), &[], parts, min)), expected);
        }
    }

    #[test]
    fn fifty_messages_of_a_thousand_tokens_make_three_parts() {
        let sizes = vec![Tokens(1_000); 50];
        let ratio = ChunkRatio::Ponybunny.of(&sizes, Tokens(100_000));
        let parts = (1.0 / ratio).ceil() as usize;
        let pieces = split_by_token_share(&sizes, &[], parts, 4);
        assert_eq!(pieces.iter().map(ExactSizeIterator::len).collect::<Vec<_>>(), [17, 16, 17]);
    }
}

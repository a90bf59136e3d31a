//! Counts tokens of OpenAI's vocabulary o200k: a pattern splits the text into pieces, and byte pairs
//! of a piece are merged in the order of their ranks. A piece of n bytes takes O(n log n).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::LazyLock;

use foldhash::HashMap;
use regex::Regex;

/// Written by the build script, which says what is in it.
static VOCABULARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/o200k"));

static RANKS: LazyLock<HashMap<&'static [u8], u32>> = LazyLock::new(|| {
    let (bytes, pairs) = VOCABULARY.split_at(256);
    let mut bytes = bytes.to_vec();
    let mut starts: Vec<usize> = (0..=bytes.len()).collect();
    for two in pairs.chunks_exact(9) {
        let mut ranks = [0; 16];
        ranks[..9].copy_from_slice(two);
        let ranks = u128::from_le_bytes(ranks);
        for shift in [0, 36] {
            for shift in [shift, shift + 18] {
                let rank = (ranks >> shift) as usize & 0x3_ffff;
                bytes.extend_from_within(starts[rank]..starts[rank + 1]);
            }
            starts.push(bytes.len());
        }
    }
    let bytes: &[u8] = bytes.leak();
    starts.windows(2).zip(0..).map(|(token, rank)| (&bytes[token[0]..token[1]], rank)).collect()
});

/// OpenAI's pattern, but for its look-ahead `\s+(?!\S)`: see [`pieces`]. It matches at every
/// character.
#[expect(clippy::unwrap_used, reason = "a test compiles it")]
static PIECE: LazyLock<Regex> = LazyLock::new(|| {
    const LETTERS: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]";
    const LOWER: &str = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]";
    const SHORT_FORM: &str = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?";
    Regex::new(&format!(
        r"{LETTERS}*{LOWER}+{SHORT_FORM}|{LETTERS}+{LOWER}*{SHORT_FORM}|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|\s*[\r\n]+|\s+"
    ))
    .unwrap()
});

pub(super) fn tokens(text: &str) -> u64 {
    pieces(text).map(|piece| piece_tokens(piece.as_bytes())).sum()
}

/// Splits a text. The last of several spaces before a word belongs to the word.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let mut end = PIECE.find_at(text, at)?.end();
        let piece = &text[at..end];
        if let Some(last) = piece.chars().next_back()
            && last.is_whitespace()
            && !matches!(last, '\r' | '\n')
            && end < text.len()
            && piece.len() > last.len_utf8()
        {
            end -= last.len_utf8();
        }
        let piece = &text[at..end];
        at = end;
        Some(piece)
    })
}

/// Merges the pair of neighbours with the lowest rank, the leftmost of equal ones, until no pair is a
/// token.
fn piece_tokens(piece: &[u8]) -> u64 {
    if piece.len() < 2 || RANKS.contains_key(piece) {
        return 1;
    }
    let pair = |start: usize, end: usize| {
        let rank = RANKS.get(&piece[start..end])?;
        Some(Reverse((*rank, start, end)))
    };
    // The parts of the piece, by the byte at which they begin. A part that was merged into the one
    // before it ends nowhere.
    let mut ends: Vec<Option<usize>> = (1..=piece.len()).map(Some).collect();
    let mut previous: Vec<Option<usize>> =
        (0..piece.len()).map(|start| start.checked_sub(1)).collect();
    let mut pairs: BinaryHeap<_> = (2..=piece.len()).filter_map(|end| pair(end - 2, end)).collect();
    let mut parts = piece.len() as u64;
    while let Some(Reverse((_, start, end))) = pairs.pop() {
        let Some(middle) = ends[start].filter(|&middle| ends.get(middle) == Some(&Some(end)))
        else {
            continue;
        };
        ends[start] = Some(end);
        ends[middle] = None;
        parts -= 1;
        pairs.extend(previous[start].and_then(|before| pair(before, end)));
        if let Some(&Some(next)) = ends.get(end) {
            previous[end] = Some(start);
            pairs.extend(pair(start, next));
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::tokens;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        /// The judge is another implementation, which is tested against OpenAI's.
        #[test]
        fn counts_are_those_of_bpe_openai(
            text in prop_oneof![
                "[ \\t\\r\\n]{0,9}[a-zA-Z'é]{0,12}[ \\t\\r\\n\u{2028}\u{3000}]{0,9}[0-9/.,_-]{0,9}[ -~\\n]{0,40}",
                "(\\PC|[ \\n]){0,60}",
                "(aa|ab|ba|你好|\u{301}| ){0,60}",
            ]
        ) {
            prop_assert_eq!(tokens(&text), bpe_openai::o200k_base().count(text.as_str()) as u64);
        }
    }

    #[test]
    fn a_long_run_is_counted_like_any_other() {
        for run in ["a", " ", " \n", "中文", "ABCé", "\u{301}"] {
            let text = format!("x{}y", run.repeat(20_000));
            assert_eq!(
                tokens(&text),
                bpe_openai::o200k_base().count(text.as_str()) as u64,
                "{run:?}"
            );
        }
    }
}

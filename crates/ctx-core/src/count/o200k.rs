//! Counts tokens of OpenAI's vocabulary o200k: a pattern splits the text into pieces, and byte pairs
//! of a piece are merged in the order of their ranks. A piece of n bytes takes O(n log n).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::LazyLock;

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use regex::Regex;

/// Written by the build script, which says what is in it.
static FILE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/o200k"));

static HASH: FixedState = FixedState::with_seed(0);

static VOCABULARY: LazyLock<Vocabulary> = LazyLock::new(Vocabulary::read);

/// The tokens in the order of their ranks. It keeps ranks alone by the hash, which is 5 MB less to
/// write when it is read than a map of tokens.
struct Vocabulary {
    bytes: Vec<u8>,
    /// Where each token begins in `bytes`, and then the end of the last one.
    starts: Vec<u32>,
    ranks: HashTable<u32>,
}

impl Vocabulary {
    fn read() -> Self {
        let (bytes, pairs) = FILE.split_at(256);
        let mut read = Self {
            bytes: bytes.to_vec(),
            starts: (0..=256).collect(),
            ranks: HashTable::with_capacity(256 + pairs.len() / 9 * 2),
        };
        for two in pairs.chunks_exact(9) {
            let mut halves = [0; 16];
            halves[..9].copy_from_slice(two);
            let halves = u128::from_le_bytes(halves);
            for shift in [0, 36] {
                for shift in [shift, shift + 18] {
                    // A call of musl's memcpy takes longer than these few bytes do.
                    for at in read.range((halves >> shift) as u32 & 0x3_ffff) {
                        read.bytes.push(read.bytes[at]);
                    }
                }
                read.starts.push(read.bytes.len() as u32);
            }
        }
        for rank in 0..read.starts.len() as u32 - 1 {
            let hash = HASH.hash_one(&read.bytes[read.range(rank)]);
            read.ranks.insert_unique(hash, rank, |_| unreachable!("it has the capacity"));
        }
        read
    }

    fn range(&self, rank: u32) -> Range<usize> {
        self.starts[rank as usize] as usize..self.starts[rank as usize + 1] as usize
    }

    fn rank(&self, token: &[u8]) -> Option<u32> {
        let is_it = |&rank: &u32| self.bytes[self.range(rank)] == *token;
        self.ranks.find(HASH.hash_one(token), is_it).copied()
    }
}

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
    if piece.len() < 2 || VOCABULARY.rank(piece).is_some() {
        return 1;
    }
    // A pair in one word: its rank, where it begins (38 bits), and its length (8 bits).
    let pair = |start: usize, end: usize| {
        let rank = u64::from(VOCABULARY.rank(&piece[start..end])?);
        Some(Reverse(rank << 46 | (start as u64) << 8 | (end - start) as u64))
    };
    // The parts of the piece, by the byte at which they begin. A part that was merged into the one
    // before it ends nowhere.
    let mut ends: Vec<Option<usize>> = (1..=piece.len()).map(Some).collect();
    let mut previous: Vec<Option<usize>> =
        (0..piece.len()).map(|start| start.checked_sub(1)).collect();
    let mut pairs: BinaryHeap<_> = (2..=piece.len()).filter_map(|end| pair(end - 2, end)).collect();
    let mut parts = piece.len() as u64;
    while let Some(Reverse(word)) = pairs.pop() {
        let start = (word >> 8) as usize & ((1 << 38) - 1);
        let end = start + (word & 0xff) as usize;
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

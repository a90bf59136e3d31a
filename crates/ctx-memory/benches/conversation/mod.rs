//! Generated conversation text: word frequencies follow Zipf's law, and every run gets the same
//! text.

use ctx_core::{Role, Timestamp};
use ctx_search::{Metadata, Segment, SegmentId};

const WORDS: usize = 50_000;
const WORDS_OF_A_SEGMENT: usize = 150;

/// Pseudo-random numbers, the same in every run.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 ^ (self.0 >> 29)) >> 16
    }

    pub(crate) fn fraction(&mut self) -> f32 {
        (self.next() % (1 << 24)) as f32 / (1 << 24) as f32
    }

    /// Returns a word by its rank; low ranks are far more frequent.
    pub(crate) fn word(&mut self) -> usize {
        ((WORDS as f32).powf(self.fraction()) as usize).min(WORDS) - 1
    }
}

/// Returns the spelling of the word with this rank.
pub(crate) fn spelled(mut word: usize) -> String {
    let mut text = String::new();
    for _ in 0..3 {
        text.push(char::from(b"bdfgklmnprstvz"[word % 14]));
        text.push(char::from(b"aeiou"[word / 14 % 5]));
        word /= 70;
    }
    text
}

/// Returns the `n`th segment.
pub(crate) fn segment(n: usize) -> Segment {
    let mut numbers = Numbers(n as u64 * 7_919 + 1);
    let words: Vec<_> = (0..WORDS_OF_A_SEGMENT).map(|_| spelled(numbers.word())).collect();
    let content = format!("t{n} {}", words.join(" "));
    let session = format!("s{}", n / 50);
    Segment {
        id: SegmentId::of(&session, &Role::User, &content),
        agent_id: "main".into(),
        session_id: session,
        timestamp: Timestamp(1_700_000_000_000 + n as i64 * 60_000),
        archived_at: None,
        role: Role::User,
        name: None,
        content,
        tokens: 150,
        metadata: Metadata::default(),
        entry_id: None,
    }
}

/// Returns questions of six words, none of them among the hundred most frequent.
pub(crate) fn questions() -> Vec<String> {
    let mut numbers = Numbers(42);
    let mut word = || loop {
        let word = numbers.word();
        if word >= 100 {
            return spelled(word);
        }
    };
    (0..64).map(|_| (0..6).map(|_| word()).collect::<Vec<_>>().join(" ")).collect()
}

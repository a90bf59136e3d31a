//! Size limits of an answer.

/// Upper bound of the average number of text bytes per token.
const TEXT_BYTES_PER_TOKEN: u64 = 64;

/// Maximum bytes of the event for one token; some providers repeat the whole state in each event.
const EVENT_BYTES_PER_TOKEN: u64 = 4_096;

/// The allowance for everything other than text.
const TEXT_MARGIN: u64 = 16 * 1024;
const EVENT_MARGIN: u64 = 4 * 1024 * 1024;

/// The maximum size that corresponds to `max_tokens`. Reading stops when a server sends more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AnswerLimits {
    /// Bytes of text.
    pub(super) text: u64,
    /// Bytes on the wire.
    pub(super) wire: u64,
}

impl AnswerLimits {
    pub(super) fn for_answer(max_tokens: u32) -> Self {
        let tokens = u64::from(max_tokens);
        Self {
            text: tokens * TEXT_BYTES_PER_TOKEN + TEXT_MARGIN,
            wire: tokens * EVENT_BYTES_PER_TOKEN + EVENT_MARGIN,
        }
    }
}

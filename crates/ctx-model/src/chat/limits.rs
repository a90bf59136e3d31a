//! How much an answer may hold.

/// No token stands for more bytes of text than this on average.
const TEXT_BYTES_PER_TOKEN: u64 = 64;

/// How much the event of one token may weigh: some providers repeat everything with each.
const EVENT_BYTES_PER_TOKEN: u64 = 4_096;

/// What is left for events around the text.
const TEXT_ROOM: u64 = 16 * 1024;
const EVENT_ROOM: u64 = 4 * 1024 * 1024;

/// What `max_tokens` can mean at most. A server that sends more is not waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// Bytes of text.
    pub(super) text: u64,
    /// Bytes on the wire.
    pub(super) wire: u64,
}

impl Limits {
    pub(super) fn for_answer(max_tokens: u32) -> Self {
        let tokens = u64::from(max_tokens);
        Self {
            text: tokens * TEXT_BYTES_PER_TOKEN + TEXT_ROOM,
            wire: tokens * EVENT_BYTES_PER_TOKEN + EVENT_ROOM,
        }
    }
}

//! Recognising lists and messages where brackets are unreliable.

use ctx_core::text::Slice;

/// The keys that a message may begin with. Blocks of messages begin with `type`.
const FIRST_KEYS: [&str; 8] =
    ["role", "content", "timestamp", "id", "name", "tool_call_id", "toolCallId", "compactedAt"];

/// Returns where the list whose key is at `at` begins: at the key, or at the quote before it.
pub(super) fn list_at(text: &str, at: usize, key: &str) -> Option<usize> {
    let after = text.get(at + key.len()..)?;
    let after = after.strip_prefix(['"', '\'']).unwrap_or(after);
    let value = after.trim_start().strip_prefix(':')?;
    let quoted = text.get(..at)?.ends_with(['"', '\'']);
    value.trim_start().starts_with('[').then_some(at - usize::from(quoted))
}

/// Whether an object's first key is one that messages begin with.
pub(super) fn begins_message(object: &str) -> bool {
    let Some(inner) = object.strip_prefix('{') else { return false };
    let inner = inner.trim_start();
    let inner = inner.strip_prefix(['"', '\'']).unwrap_or(inner);
    FIRST_KEYS.iter().any(|key| {
        inner.strip_prefix(key).is_some_and(|rest| {
            rest.strip_prefix(['"', '\'']).unwrap_or(rest).trim_start().starts_with(':')
        })
    })
}

/// Whether a broken element includes its neighbours: a message begins in it after the end of
/// another object.
pub(super) fn includes_messages(element: &str) -> bool {
    memchr::memchr_iter(b'{', element.as_bytes()).skip(1).any(|at| {
        let before = element.slice(..at).trim_end();
        before.strip_suffix(',').is_some_and(|b| b.trim_end().ends_with('}'))
            && begins_message(element.slice(at..))
    })
}

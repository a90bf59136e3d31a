//! Anthropic messages.

use ctx_core::Usage;

use super::{Found, says};
use crate::json::Object;

/// An answer in one piece.
pub(super) fn whole(found: &mut Found, answer: &Object<'_>) {
    for block in answer.array("content").unwrap_or_default() {
        found.content_if(Object::of(block).is_some_and(|block| is_filled(&block)));
    }
    usage(found, answer);
    found.finish(answer.owned("stop_reason"));
    found.finished = found.finished || answer.has("content");
}

/// An event of a stream.
pub(super) fn event(found: &mut Found, event: &Object<'_>) {
    match event.text("type").as_deref() {
        Some("message_start") => {
            if let Some(message) = event.object("message") {
                usage(found, &message);
            }
        }
        // A block that begins is an answer, however long the model thinks in it.
        Some("content_block_start") => found.content(),
        Some("content_block_delta") => {
            let delta = event.object("delta").unwrap_or_default();
            let said = ["text", "thinking", "partial_json", "signature"];
            found.content_if(said.iter().any(|key| says(&delta, key)));
        }
        Some("message_delta") => {
            usage(found, event);
            let delta = event.object("delta").unwrap_or_default();
            found.finish(delta.owned("stop_reason"));
        }
        Some("message_stop") => found.finished = true,
        _ => {}
    }
}

/// Whether a block says something by being there.
fn is_filled(block: &Object<'_>) -> bool {
    match block.text("type").as_deref() {
        Some("text") => says(block, "text"),
        Some("thinking") => says(block, "thinking"),
        Some(_) => true,
        None => false,
    }
}

/// Counts come twice; what the second does not name stays as it was. What is read from the cache
/// stands beside the input, not in it.
fn usage(found: &mut Found, of: &Object<'_>) {
    let Some(usage) = of.object("usage") else { return };
    let before = found.usage.unwrap_or_default();
    let count = |key: &str, before: u64| usage.count(key).unwrap_or(before);
    found.usage = Some(Usage {
        input: count("input_tokens", before.input),
        output: count("output_tokens", before.output),
        cache_read: count("cache_read_input_tokens", before.cache_read),
        cache_write: count("cache_creation_input_tokens", before.cache_write),
        ..Usage::default()
    });
}

//! Bedrock Converse.

use ctx_core::Usage;

use super::{AnswerFindings, says};
use crate::json::Object;

/// Reads an answer that was not streamed.
pub(super) fn whole(found: &mut AnswerFindings, answer: &Object<'_>) {
    let message = answer.object("output").and_then(|output| output.object("message"));
    let content = message.and_then(|message| message.array("content")).unwrap_or_default();
    found.content_if(!content.is_empty());
    found.finished |= answer.has("output");
    event(found, answer);
}

/// Reads an event of a stream.
pub(super) fn event(found: &mut AnswerFindings, event: &Object<'_>) {
    let delta = event.object("delta").unwrap_or_default();
    let is_filled = |(key, _): (&str, _)| key != "text" || says(&delta, key);
    found.content_if(event.has("start") || delta.iter().any(is_filled));
    found.finish(event.owned("stopReason"));
    // Only the last event has the usage.
    if let Some(usage) = event.object("usage") {
        let count = |key: &str| usage.count(key).unwrap_or_default();
        found.usage = Some(Usage {
            input: count("inputTokens"),
            output: count("outputTokens"),
            cache_read: count("cacheReadInputTokens"),
            cache_write: count("cacheWriteInputTokens"),
            ..Usage::default()
        });
        found.finished = true;
    }
}

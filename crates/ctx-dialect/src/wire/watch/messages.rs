//! Anthropic Messages.

use super::{AnswerFindings, says};
use crate::json::Object;
use ctx_core::Usage;

/// Reads an answer that was not streamed.
pub(super) fn whole(found: &mut AnswerFindings, answer: &Object<'_>) {
    for block in answer.array("content").unwrap_or_default() {
        found.content_if(Object::of(block).is_some_and(|block| is_filled(&block)));
    }
    usage(found, answer);
    found.finish(answer.owned("stop_reason"));
    found.finished = found.finished || answer.has("content");
}

/// Reads an event of a stream.
pub(super) fn event(found: &mut AnswerFindings, event: &Object<'_>) {
    match event.text("type").as_deref() {
        Some("message_start") => {
            if let Some(message) = event.object("message") {
                usage(found, &message);
            }
        }
        // The start of a block counts as content, even if the model then thinks for long.
        Some("content_block_start") => {
            found.content();
            let block = event.object("content_block").unwrap_or_default();
            let is_compaction = block.text("type").as_deref() == Some("compaction");
            let content = || block.owned("content").unwrap_or_default();
            found.compaction = is_compaction.then(content);
        }
        Some("content_block_delta") => {
            let delta = event.object("delta").unwrap_or_default();
            let keys = ["text", "thinking", "partial_json", "signature"];
            found.content_if(keys.iter().any(|key| says(&delta, key)));
            if let Some(compaction) = &mut found.compaction {
                compaction.extend(delta.text("content"));
            }
        }
        Some("content_block_stop") => {
            found.compactions.extend(found.compaction.take().filter(|content| !content.is_empty()));
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

/// Whether a complete block counts as content.
fn is_filled(block: &Object<'_>) -> bool {
    match block.text("type").as_deref() {
        Some("text") => says(block, "text"),
        Some("thinking") => says(block, "thinking"),
        Some(_) => true,
        None => false,
    }
}

/// Usage is reported twice; fields missing from the second report keep their values.
fn usage(found: &mut AnswerFindings, of: &Object<'_>) {
    let Some(counts) = of.object("usage") else { return };
    found.usage = Some(crate::anthropic::usage(&counts, found.usage.unwrap_or_default()));
    let iterations = counts.array("iterations").unwrap_or_default();
    let iterations = iterations.into_iter().filter_map(Object::of);
    let compactions = iterations.filter(|of| of.text("type").as_deref() == Some("compaction"));
    let compactions: Vec<_> =
        compactions.map(|of| crate::anthropic::usage(&of, Usage::default())).collect();
    if !compactions.is_empty() {
        found.compaction_usage = compactions;
    }
}

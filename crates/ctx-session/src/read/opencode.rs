//! What `opencode export` writes, as a session of pi.

use ctx_dialect::json::{Fresh, Object, array};
use serde_json::value::RawValue;

use super::PiLines;

/// The document as lines of a pi session.
pub(super) fn to_pi(document: &Object<'_>) -> Vec<u8> {
    let info = document.object("info").unwrap_or_default();
    let id = info.text("id").unwrap_or_default();
    let mut lines = PiLines::new(&id, None, info.text("directory").as_deref());
    for message in document.array("messages").unwrap_or_default() {
        let message = Object::of(message).unwrap_or_default();
        let info = message.object("info").unwrap_or_default();
        let id = info.text("id").unwrap_or_default();
        let time = info.object("time").and_then(|time| time.get("created"));
        let parts = message.array("parts").unwrap_or_default();
        let parts: Vec<_> = parts.into_iter().filter_map(Object::of).collect();
        let time = time.map_or("null", RawValue::get);
        if info.is_true("summary") {
            let texts: Vec<_> = parts.iter().filter_map(|part| part.text("text")).collect();
            // It keeps nothing of what was before, which is what it says by naming itself.
            let summary = Fresh::new().text("summary", &texts.join("\n\n"));
            lines.entry("compaction", &id, time, &summary.text("firstKeptEntryId", &id));
            continue;
        }
        let blocks = array(parts.iter().filter_map(block));
        let role = info.text("role").unwrap_or_default();
        let mut fresh = Fresh::new().text("role", &role).raw("content", blocks);
        if role == "assistant" {
            fresh = fresh
                .text_if("provider", info.text("providerID").as_deref())
                .text_if("model", info.text("modelID").as_deref())
                .raw("usage", usage(&info.object("tokens").unwrap_or_default()));
        }
        let results = parts.iter().filter_map(result);
        lines.messages(&id, time, std::iter::once(fresh.end()).chain(results));
    }
    lines.end()
}

fn usage(tokens: &Object<'_>) -> String {
    let cache = tokens.object("cache").unwrap_or_default();
    let count = |of: &Object<'_>, key| of.count(key).unwrap_or_default();
    Fresh::new()
        .plain("input", count(tokens, "input"))
        .plain("output", count(tokens, "output").saturating_add(count(tokens, "reasoning")))
        .plain("cacheRead", count(&cache, "read"))
        .plain("cacheWrite", count(&cache, "write"))
        .end()
}

/// A part of a message that a model is sent.
fn block(part: &Object<'_>) -> Option<String> {
    let text = |kind: &str, key: &str, text: &str| {
        Some(Fresh::new().text("type", kind).text(key, text).end())
    };
    match part.text("type").as_deref()? {
        "text" if part.is_true("ignored") => None,
        "text" => text("text", "text", &part.text("text")?),
        "reasoning" => text("thinking", "thinking", &part.text("text")?),
        "file" if part.text("mime")?.starts_with("image/") => {
            text("image", "url", &part.text("url")?)
        }
        "tool" => {
            let state = part.object("state").unwrap_or_default();
            let call = Fresh::new().text("type", "toolCall").text("id", &part.text("callID")?);
            let arguments = state.get("input").map_or("{}", RawValue::get);
            Some(call.text("name", &part.text("tool")?).raw("arguments", arguments).end())
        }
        _ => None,
    }
}

/// The result of a call, where there is one.
fn result(part: &Object<'_>) -> Option<String> {
    let (id, state) = (part.text("callID")?, part.object("state")?);
    let error = state.text("error");
    let said = state.text("output").or_else(|| error.clone())?;
    let content = Fresh::new().text("type", "text").text("text", &said).end();
    let result = Fresh::new().text("role", "toolResult").text("toolCallId", &id);
    let result = result.text("toolName", &part.text("tool")?).raw("content", array([content]));
    Some(result.plain("isError", error.is_some()).end())
}

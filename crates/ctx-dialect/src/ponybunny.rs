//! PonyBunny's session messages: chat messages in camelCase (`toolCalls`, `toolCallId`,
//! `thinkingBlocks`).

use ctx_core::{Block, Message, Result, Role};
use serde_json::value::RawValue;

use crate::json::{Fresh, Object, array, elements, value};
use crate::openai_chat;
use crate::shape::{as_user_text, split_results, texts};

/// Reads a message.
///
/// # Errors
///
/// [`Corrupt`](ctx_core::ErrorKind::Corrupt) if the text is not JSON.
pub fn parse(json: &str) -> Result<Message> {
    value(json).map(parse_raw)
}

/// Reads a message from a value that is known to be JSON.
#[must_use]
pub fn parse_raw(raw: &RawValue) -> Message {
    let mut message = openai_chat::parse_raw(raw);
    let Some(object) = Object::of(raw) else { return message };
    let thoughts = object.get("thinkingBlocks").and_then(elements).unwrap_or_default();
    let thoughts = thoughts.into_iter().map(|raw| match Object::of(raw) {
        Some(block) => Block::Thinking {
            thinking: block.owned("thinking").or_else(|| block.owned("text")).unwrap_or_default(),
            signature: block.owned("signature"),
        },
        None => Block::Thinking {
            thinking: crate::json::string(raw).unwrap_or_default().into_owned(),
            signature: None,
        },
    });
    message.blocks.splice(0..0, thoughts);
    if message.meta.timestamp.is_none() {
        message.meta.timestamp = object.integer("compactedAt").map(ctx_core::Timestamp);
    }
    message
}

/// Writes a message; one with several tool results becomes several. Summaries go to
/// `compactedHistory`, see [`write_summary`].
#[must_use]
pub fn write(message: &Message) -> Vec<String> {
    let Some(message) = as_user_text(message) else { return Vec::new() };
    split_results(&message).iter().map(|part| one(part)).collect()
}

fn one(message: &Message) -> String {
    let role = match &message.role {
        Role::ToolResult => "tool",
        role => role.name(),
    };
    let mut fresh = Fresh::new().text("role", role);
    fresh = match message.tool_results().next() {
        Some(result) if message.role == Role::ToolResult => {
            let fresh = fresh
                .text("toolCallId", &result.call_id)
                .text_if("toolName", result.name.as_deref())
                .text("content", &texts(&result.content));
            if result.is_error { fresh.plain("isError", true) } else { fresh }
        }
        _ => beside_results(fresh, message),
    };
    fresh.plain_if("timestamp", message.meta.timestamp.map(|t| t.0)).end()
}

fn beside_results(fresh: Fresh, message: &Message) -> Fresh {
    let mut text: Vec<Block> = Vec::new();
    let mut thoughts = Vec::new();
    let mut calls = Vec::new();
    for block in &message.blocks {
        match block {
            Block::Thinking { thinking, signature } => thoughts.push(
                Fresh::new()
                    .text("type", "thinking")
                    .text("thinking", thinking)
                    .text_if("signature", signature.as_deref())
                    .end(),
            ),
            Block::ToolCall(call) => calls.push(
                Fresh::new()
                    .text("id", &call.id)
                    .text("name", &call.name)
                    .raw("arguments", call.arguments.as_str())
                    .end(),
            ),
            block => text.push(block.clone()),
        }
    }
    let mut fresh = fresh.text("content", &texts(&text));
    if !thoughts.is_empty() {
        fresh = fresh.raw("thinkingBlocks", array(thoughts));
    }
    if !calls.is_empty() {
        fresh = fresh.raw("toolCalls", array(calls));
    }
    let Some(usage) = message.meta.usage else { return fresh };
    let usage = Fresh::new()
        .plain("input", usage.input)
        .plain("output", usage.output)
        .plain("cacheRead", usage.cache_read)
        .plain("cacheWrite", usage.cache_write)
        .plain("totalTokens", usage.total());
    fresh.raw("usage", usage.end())
}

/// Writes a summary as an element of `compactedHistory`.
#[must_use]
pub fn write_summary(message: &Message) -> String {
    Fresh::new()
        .text("role", "system")
        .text("content", &message.plain_text())
        .plain_if("compactedAt", message.meta.timestamp.map(|t| t.0))
        .end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_round_trip() {
        for json in [
            r#"{"role":"user","content":"hi","timestamp":1704067200000}"#,
            r#"{"role":"assistant","content":"x","thinkingBlocks":[{"type":"thinking","thinking":"t"}],"toolCalls":[{"id":"c","name":"n","arguments":{"a":1.50}}],"usage":{"input":1,"output":2,"cacheRead":0,"cacheWrite":0,"totalTokens":3}}"#,
            r#"{"role":"tool","toolCallId":"c","content":"out"}"#,
        ] {
            assert_eq!(write(&parse(json).unwrap()), [json]);
        }
        let call = r#"{"role":"assistant","toolCalls":[{"id":"c","function":{"name":"n","arguments":"{}"}}]}"#;
        assert_eq!(parse(call).unwrap().tool_calls().next().unwrap().name, "n");
    }
}

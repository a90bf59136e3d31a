//! PonyBunny's session messages: chat messages in camelCase (`toolCalls`, `toolCallId`,
//! `thinkingBlocks`).

use std::borrow::Cow;

use ctx_core::{Block, Message, RawJson, Result, Role};
use serde_json::value::RawValue;

use crate::json::{Object, ObjectWriter, array, elements, value};
use crate::openai_chat;
use crate::shape::{as_user_text, split_results, texts};

/// The fields that may contain a thinking block's text.
const THOUGHTS: [&str; 3] = ["content", "thinking", "text"];

/// Parses a message.
///
/// # Errors
///
/// [`Corrupt`](ctx_core::ErrorKind::Corrupt) if the text is not JSON.
pub fn parse(json: &str) -> Result<Message> {
    value(json).map(parse_raw)
}

/// Parses a message from a valid JSON value.
#[must_use]
pub fn parse_raw(raw: &RawValue) -> Message {
    let mut message = openai_chat::parse_raw(raw);
    let Some(object) = Object::of(raw) else { return message };
    let thoughts = object.get("thinkingBlocks").and_then(elements).unwrap_or_default();
    message.blocks.splice(0..0, thoughts.into_iter().map(thought));
    if message.meta.timestamp.is_none() {
        message.meta.timestamp = object.integer("compactedAt").map(ctx_core::Timestamp);
    }
    message
}

/// Parses an element of `thinkingBlocks`. PonyBunny's own blocks have their text in `content`,
/// blocks copied from a provider in the provider's field. Blocks without text become opaque.
fn thought(raw: &RawValue) -> Block {
    let block = Object::of(raw);
    let text = match &block {
        Some(block) => THOUGHTS.iter().find_map(|key| block.owned(key)),
        None => crate::json::string(raw).map(Cow::into_owned),
    };
    let signature = block.and_then(|block| block.owned("signature"));
    match (text, signature) {
        (None, None) => Block::Opaque { json: RawJson::from(raw) },
        (text, signature) => Block::Thinking { thinking: text.unwrap_or_default(), signature },
    }
}

/// Writes a message; a message with several tool results is split. Summaries go to
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
    let mut fresh = ObjectWriter::new().text("role", role);
    fresh = match message.tool_results().next() {
        Some(result) if message.role == Role::ToolResult => fresh
            .text("toolCallId", &result.call_id)
            .text_if("toolName", result.name.as_deref())
            .text("content", &texts(&result.content))
            .plain_if("isError", result.is_error.then_some(true)),
        _ => chat_fields(fresh, message),
    };
    fresh.plain_if("timestamp", message.meta.timestamp.map(|t| t.0)).end()
}

fn chat_fields(fresh: ObjectWriter, message: &Message) -> ObjectWriter {
    let mut text: Vec<Block> = Vec::new();
    let mut thoughts = Vec::new();
    let mut calls = Vec::new();
    for block in &message.blocks {
        match block {
            Block::Thinking { thinking, signature } => thoughts.push(
                ObjectWriter::new()
                    .text("type", "thinking")
                    .text("content", thinking)
                    .text_if("signature", signature.as_deref())
                    .end(),
            ),
            Block::ToolCall(call) => calls.push(
                ObjectWriter::new()
                    .text("id", &call.id)
                    .text("name", &call.name)
                    .raw("arguments", call.arguments.as_str())
                    .end(),
            ),
            Block::Opaque { json } if is_thought(json) => thoughts.push(json.as_str().to_owned()),
            block => text.push(block.clone()),
        }
    }
    let usage = message.meta.usage.map(|usage| {
        ObjectWriter::new()
            .plain("input", usage.input)
            .plain("output", usage.output)
            .plain("cacheRead", usage.cache_read)
            .plain("cacheWrite", usage.cache_write)
            .plain("totalTokens", usage.total())
            .end()
    });
    fresh
        .text("content", &texts(&text))
        .raw_if("thinkingBlocks", (!thoughts.is_empty()).then(|| array(thoughts)))
        .raw_if("toolCalls", (!calls.is_empty()).then(|| array(calls)))
        .raw_if("usage", usage)
}

/// Whether an opaque block is a provider's thinking.
fn is_thought(json: &RawJson) -> bool {
    Object::parse(json.as_str())
        .is_ok_and(|o| o.text("type").is_some_and(|kind| kind.contains("thinking")))
}

/// Writes a summary as an element of `compactedHistory`.
#[must_use]
pub fn write_summary(message: &Message, replaced: Option<usize>) -> String {
    ObjectWriter::new()
        .text("role", "system")
        .text("content", &message.plain_text())
        .plain_if("compactedAt", message.meta.timestamp.map(|t| t.0))
        .plain_if("originalMessageCount", replaced)
        .end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_round_trip() {
        for json in [
            r#"{"role":"user","content":"hi","timestamp":1704067200000}"#,
            r#"{"role":"assistant","content":"x","thinkingBlocks":[{"type":"thinking","content":"t"},{"type":"redacted_thinking","data":"zz"}],"toolCalls":[{"id":"c","name":"n","arguments":{"a":1.50}}],"usage":{"input":1,"output":2,"cacheRead":0,"cacheWrite":0,"totalTokens":3}}"#,
            r#"{"role":"tool","toolCallId":"c","content":"out"}"#,
        ] {
            assert_eq!(write(&parse(json).unwrap()), [json]);
        }
        for block in [r#"{"content":"t"}"#, r#"{"thinking":"t"}"#, r#"{"text":"t"}"#, "\"t\""] {
            let json = format!(r#"{{"role":"assistant","content":"","thinkingBlocks":[{block}]}}"#);
            let thinking = Block::Thinking { thinking: "t".to_owned(), signature: None };
            assert!(parse(&json).unwrap().blocks.contains(&thinking), "{json}");
        }
        let call = r#"{"role":"assistant","toolCalls":[{"id":"c","function":{"name":"n","arguments":"{}"}}]}"#;
        assert_eq!(parse(call).unwrap().tool_calls().next().unwrap().name, "n");
    }
}

//! A single-pass parser for the most common shapes of pi messages.
//!
//! The tolerant parser scans each value once per nesting level, which dominates the time of
//! counting a large session. This parser handles messages exactly as pi writes them; anything
//! unusual is left to the tolerant parser, which gives the same result for these messages.

use ctx_core::{
    Block, CallSpelling, Counter, Image, Message, MessageOutline, Meta, RawJson, Role, Timestamp,
    Tokens, ToolCall, ToolResult, Usage,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

/// Parses a user, assistant or tool message whose content is a list of text, thinking, calls and
/// inline images. Returns `None` for any other message, which the tolerant parser reads.
pub(super) fn parse(json: &str) -> Option<Message> {
    let plain: Plain<'_, String> = serde_json::from_str(json).ok()?;
    if plain.unusual.is_some() {
        return None;
    }
    let content: Option<Vec<Block>> = plain.content.into_iter().map(PlainBlock::block).collect();
    let content = content?;
    let (role, blocks) = match plain.role {
        "user" => (Role::User, content),
        "assistant" => (Role::Assistant, content),
        "toolResult" if content.iter().any(|b| matches!(b, Block::ToolCall(_))) => return None,
        "toolResult" => {
            let result = ToolResult {
                call_id: plain.tool_call_id.filter(|id| !id.is_empty())?.into(),
                name: plain.tool_name,
                content,
                is_error: plain.is_error.unwrap_or_default(),
            };
            (Role::ToolResult, vec![Block::ToolResult(result)])
        }
        _ => return None,
    };
    let meta = Meta {
        timestamp: plain.timestamp.map(Timestamp),
        api: plain.api,
        provider: plain.provider,
        model: plain.model,
        response_id: plain.response_id,
        // As the tolerant parser: pi has no such field.
        usage: plain.usage.map(|usage| Usage { cache_write_hour: 0, ..usage }),
        stop_reason: plain.stop_reason,
        error_message: plain.error_message,
        custom_type: plain.custom_type,
        hidden: plain.display == Some(false),
        ..Meta::default()
    };
    Some(Message { role, blocks, meta })
}

/// Measures a message that [`parse`] parses, without decoding its texts.
pub(super) fn measure(json: &str, counter: &Counter) -> Option<(MessageOutline, Tokens)> {
    let mut count = counter.undecoded()?;
    let plain: Plain<'_, &RawValue> = serde_json::from_str(json).ok()?;
    let role = match plain.role {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "toolResult" => Role::ToolResult,
        _ => return None,
    };
    if plain.unusual.is_some() {
        return None;
    }
    let mut calls = Vec::new();
    for block in &plain.content {
        match block.kind {
            _ if block.unusual.is_some() => return None,
            "text" => count.text(string(block.text)?),
            "thinking" => count.text(string(block.thinking)?),
            "toolCall" if role != Role::ToolResult => {
                count.call(string(block.name)?, block.arguments?.get());
                let id: String = serde_json::from_str(block.id?.get()).ok()?;
                calls.push(Some(id).filter(|id| !id.is_empty())?.into());
            }
            "image" => {
                string(block.mime_type)?;
                string(block.data)?;
                count.image(role == Role::User);
            }
            _ => return None,
        }
    }
    let result = (role == Role::ToolResult).then_some(plain.tool_call_id);
    let result = match result {
        Some(id) => Some(id.filter(|id| !id.is_empty())?.into()),
        None => None,
    };
    let outline = MessageOutline {
        has_content: role != Role::ToolResult && !plain.content.is_empty(),
        role,
        calls: calls.into(),
        results: result.into_iter().collect(),
        in_model_context: true,
        is_pinned: false,
        has_failed: MessageOutline::is_failure(plain.stop_reason.as_deref()),
    };
    Some((outline, count.total()))
}

/// Returns the source text of a string.
fn string(raw: Option<&RawValue>) -> Option<&str> {
    raw.map(RawValue::get).filter(|raw| raw.starts_with('"'))
}

/// `S` is a string, or its source text.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "S: Deserialize<'de>, 'de: 'a"))]
struct Plain<'a, S> {
    role: &'a str,
    content: Vec<PlainBlock<'a, S>>,
    timestamp: Option<i64>,
    api: Option<String>,
    provider: Option<String>,
    model: Option<String>,
    response_id: Option<String>,
    usage: Option<Usage>,
    stop_reason: Option<String>,
    error_message: Option<String>,
    custom_type: Option<String>,
    display: Option<bool>,
    tool_call_id: Option<String>,
    tool_name: Option<String>,
    is_error: Option<bool>,
    /// Field names of other dialects: messages with them are left to the tolerant parser.
    #[serde(
        rename = "tool_use_id",
        alias = "toolUseId",
        alias = "tool_call_id",
        alias = "call_id",
        alias = "id",
        alias = "name",
        alias = "status",
        alias = "response",
        alias = "output",
        alias = "is_error",
        alias = "tokensBefore"
    )]
    unusual: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "S: Deserialize<'de>, 'de: 'a"))]
struct PlainBlock<'a, S> {
    #[serde(rename = "type")]
    kind: &'a str,
    text: Option<S>,
    thinking: Option<S>,
    thinking_signature: Option<S>,
    id: Option<S>,
    name: Option<S>,
    arguments: Option<&'a RawValue>,
    data: Option<S>,
    mime_type: Option<S>,
    #[serde(rename = "signature", alias = "call_id", alias = "function")]
    unusual: Option<IgnoredAny>,
}

impl PlainBlock<'_, String> {
    fn block(self) -> Option<Block> {
        if self.unusual.is_some() {
            return None;
        }
        match self.kind {
            "text" => self.text.map(Block::text),
            "thinking" => Some(Block::Thinking {
                thinking: self.thinking?,
                signature: self.thinking_signature,
            }),
            "toolCall" => Some(Block::ToolCall(ToolCall {
                id: self.id.filter(|id| !id.is_empty())?.into(),
                name: self.name?,
                arguments: RawJson::from(self.arguments?),
                spelling: CallSpelling::ToolCall,
            })),
            "image" => Some(Block::Image(Image {
                mime_type: self.mime_type?,
                data: self.data?.into(),
                is_url: false,
            })),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses with the tolerant parser, bypassing the fast one.
    fn tolerant(json: &str) -> Message {
        super::super::parse_raw(serde_json::from_str(json).unwrap())
    }

    #[test]
    fn plain_messages_read_as_the_tolerant_reader_reads_them() {
        let plain = [
            r#"{"role":"user","content":[{"type":"text","text":"a\u00e9 \"b\""}],"timestamp":5}"#,
            r#"{"role":"user","content":[],"timestamp":5}"#,
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm","thinkingSignature":"s"},
                {"type":"text","text":"so","textSignature":"x"},
                {"type":"toolCall","id":"c1","name":"read","arguments":{"p" : [1, 2.50]},"partialJson":"{"}],
                "api":"anthropic-messages","provider":"anthropic","model":"m","responseId":"r",
                "usage":{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"totalTokens":10,"cost":{"total":0.1}},
                "stopReason":"toolUse","timestamp":6}"#,
            r#"{"role":"toolResult","toolCallId":"c1","toolName":"read","content":[{"type":"text","text":"t"},
                {"type":"image","data":"aGk=","mimeType":"image/png"}],"details":{"deep":[[[]]]},"isError":true,"timestamp":7}"#,
        ];
        for json in plain {
            let message = tolerant(json);
            assert_eq!(parse(json).as_ref(), Some(&message), "{json}");
            for free_user_images in [false, true] {
                let counter = Counter { call_tokens: 3, free_user_images, ..Counter::default() };
                let expected = (MessageOutline::of(&message), counter.message(&message));
                assert_eq!(measure(json, &counter), Some(expected), "{json}");
            }
        }
    }

    #[test]
    fn unusual_messages_are_left_to_the_tolerant_reader() {
        let unusual = [
            r#"{"role":"user","content":"a string"}"#,
            r#"{"role":"user","content":[{"type":"hologram","text":"t"}]}"#,
            r#"{"role":"user","content":[{"type":"text"}]}"#,
            r#"{"role":"user","content":[{"type":"text","text":"\ud800"}]}"#,
            r#"{"role":"user","role":"assistant","content":[]}"#,
            r#"{"role":"narrator","content":[]}"#,
            r#"{"role":"assistant","content":[{"type":"toolCall","id":"","name":"n","arguments":{}}]}"#,
            r#"{"role":"assistant","content":[{"type":"toolCall","call_id":"x","id":"y","name":"n","arguments":{}}]}"#,
            r#"{"role":"toolResult","tool_use_id":"x","content":[]}"#,
            r#"{"role":"toolResult","toolCallId":"c","content":[{"type":"toolCall","id":"i","name":"n","arguments":{}}]}"#,
            r#"{"role":"assistant","content":[],"usage":{"input":1.5}}"#,
        ];
        for json in unusual {
            assert_eq!(parse(json), None, "{json}");
            // The size of a text does not depend on what a lone surrogate is read as.
            let measured = measure(json, &Counter::default());
            let message = tolerant(json);
            let expected = (MessageOutline::of(&message), Counter::default().message(&message));
            assert!(measured.is_none_or(|measured| measured == expected), "{json}");
        }
    }
}

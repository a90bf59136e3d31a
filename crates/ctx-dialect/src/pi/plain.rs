//! A single-pass parser for the most common shapes of pi messages.
//!
//! The tolerant parser scans each value once per nesting level, which dominates the time of
//! counting a large session. This parser handles messages exactly as pi writes them; anything
//! unusual is left to the tolerant parser, which gives the same result for these messages.

use ctx_core::{
    Block, CallSpelling, Image, Message, Meta, RawJson, Role, Timestamp, ToolCall, ToolResult,
    Usage,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

/// Parses a user, assistant or tool message whose content is a list of text, thinking, calls and
/// inline images. Returns `None` for any other message, which the tolerant parser reads.
pub(super) fn parse(json: &str) -> Option<Message> {
    let plain: Plain<'_> = serde_json::from_str(json).ok()?;
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

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Plain<'a> {
    role: &'a str,
    #[serde(borrow)]
    content: Vec<PlainBlock<'a>>,
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
#[serde(rename_all = "camelCase")]
struct PlainBlock<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    text: Option<String>,
    thinking: Option<String>,
    thinking_signature: Option<String>,
    id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    data: Option<String>,
    mime_type: Option<String>,
    #[serde(rename = "signature", alias = "call_id", alias = "function")]
    unusual: Option<IgnoredAny>,
}

impl PlainBlock<'_> {
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
            assert_eq!(parse(json).as_ref(), Some(&tolerant(json)), "{json}");
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
        }
    }
}

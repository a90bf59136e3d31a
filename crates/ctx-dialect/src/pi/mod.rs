//! pi's `AgentMessage`, as stored in pi's session files (format v3 and before).

mod plain;

use ctx_core::{
    BashRun, Block, Counter, Message, MessageOutline, Meta, RawJson, Result, Role, Timestamp,
    Tokens, Usage,
};
use serde_json::value::RawValue;

use crate::json::{Object, ObjectWriter, arguments_object, array, integer, text_block, value};
use crate::{block, shape};

/// Parses a message.
///
/// # Errors
///
/// [`Corrupt`](ctx_core::ErrorKind::Corrupt) if the text is not JSON. Other values become an opaque
/// block.
pub fn parse(json: &str) -> Result<Message> {
    if let Some(message) = plain::parse(json) {
        return Ok(message);
    }
    value(json).map(parse_raw)
}

/// Returns the outline and the tokens of a message, without decoding its texts; `None` for messages and
/// counters that need it. They are those of the parsed message.
#[must_use]
pub fn measure(json: &str, counter: &Counter) -> Option<(MessageOutline, Tokens)> {
    plain::measure(json, counter)
}

/// Parses a message from a valid JSON value.
#[must_use]
pub fn parse_raw(raw: &RawValue) -> Message {
    let Some(object) = Object::of(raw) else { return block::opaque_message(raw.get()) };
    let role = object.text("role").unwrap_or_else(|| "unknown".into());
    let role = Role::from_name(&role);
    let blocks = blocks(&role, &object, raw);
    Message { role, blocks, meta: meta(&object) }
}

fn blocks(role: &Role, object: &Object<'_>, raw: &RawValue) -> Vec<Block> {
    match role {
        Role::ToolResult => vec![Block::ToolResult(block::result_of(object))],
        Role::BashExecution => vec![Block::Bash(BashRun {
            command: object.owned("command").unwrap_or_default(),
            output: object.owned("output").unwrap_or_default(),
            exit_code: object.integer("exitCode"),
            cancelled: object.is_true("cancelled"),
            truncated: object.is_true("truncated"),
            full_output_path: object.owned("fullOutputPath"),
            exclude_from_context: object.is_true("excludeFromContext"),
        })],
        Role::CompactionSummary | Role::BranchSummary if object.has("summary") => {
            vec![Block::text(object.owned("summary").unwrap_or_default())]
        }
        Role::System => {
            let mut blocks = block::content(object.get("content"));
            let sections = object.object("sections").unwrap_or_default();
            let texts = sections.iter().filter_map(|(_, raw)| crate::json::string(raw));
            blocks.extend(texts.map(Block::text));
            blocks
        }
        Role::Other(_) if !object.has("content") => {
            vec![Block::Opaque { json: RawJson::from(raw) }]
        }
        _ => block::content(object.get("content")),
    }
}

fn meta(object: &Object<'_>) -> Meta {
    Meta {
        timestamp: object.get("timestamp").and_then(integer).map(Timestamp),
        api: object.owned("api"),
        provider: object.owned("provider"),
        model: object.owned("model"),
        response_id: object.owned("responseId"),
        usage: object.object("usage").map(|u| usage(&u)),
        stop_reason: object.owned("stopReason"),
        error_message: object.owned("errorMessage"),
        custom_type: object.owned("customType"),
        hidden: object.is_false("display"),
        tokens_before: object.count("tokensBefore"),
        ..Meta::default()
    }
}

pub(crate) fn usage(object: &Object<'_>) -> Usage {
    let count = |key| object.count(key).unwrap_or_default();
    Usage {
        input: count("input"),
        output: count("output"),
        cache_read: count("cacheRead"),
        cache_write: count("cacheWrite"),
        total_tokens: object.count("totalTokens"),
        ..Usage::default()
    }
}

/// Parses the content of `context_edit` replacements and `custom_message` entries.
#[must_use]
pub fn parse_content(raw: &RawValue) -> Vec<Block> {
    block::content(Some(raw))
}

/// Writes a message as pi stores it. A message with several tool results, or with results and other
/// content, is split: pi stores each result as a message.
#[must_use]
pub fn write(message: &Message) -> Vec<String> {
    shape::split_results(message).iter().map(|message| one(message)).collect()
}

fn one(message: &Message) -> String {
    let fresh = ObjectWriter::new().text("role", message.role.name());
    let fresh = match (&message.role, message.blocks.first()) {
        (Role::ToolResult, Some(Block::ToolResult(result))) => fresh
            .text("toolCallId", &result.call_id)
            .text("toolName", result.name.as_deref().unwrap_or_default())
            .raw("content", array(result.content.iter().map(block_json)))
            .plain("isError", result.is_error),
        (Role::BashExecution, Some(Block::Bash(run))) => bash(fresh, run),
        (Role::CompactionSummary | Role::BranchSummary, _) => {
            fresh.text("summary", &message.plain_text())
        }
        (Role::Other(_), Some(Block::Opaque { json })) if whole_message(json) => {
            return json.as_str().to_owned();
        }
        _ => fresh.raw("content", array(message.blocks.iter().map(block_json))),
    };
    with_meta(fresh, message).end()
}

/// Whether a message of an unknown role was kept whole, including its role.
fn whole_message(json: &RawJson) -> bool {
    Object::parse(json.as_str()).is_ok_and(|object| object.has("role"))
}

fn bash(fresh: ObjectWriter, run: &BashRun) -> ObjectWriter {
    fresh
        .text("command", &run.command)
        .text("output", &run.output)
        .plain_if("exitCode", run.exit_code)
        .plain("cancelled", run.cancelled)
        .plain("truncated", run.truncated)
        .text_if("fullOutputPath", run.full_output_path.as_deref())
        .plain_if("excludeFromContext", run.exclude_from_context.then_some(true))
}

fn with_meta(fresh: ObjectWriter, message: &Message) -> ObjectWriter {
    let meta = &message.meta;
    let mut fresh = fresh;
    if message.role == Role::Assistant {
        // pi requires these fields.
        fresh = fresh
            .text("api", meta.api.as_deref().unwrap_or("unknown"))
            .text("provider", meta.provider.as_deref().unwrap_or("unknown"))
            .text("model", meta.model.as_deref().unwrap_or("unknown"))
            .text_if("responseId", meta.response_id.as_deref())
            .raw("usage", usage_json(&meta.usage.unwrap_or_default()))
            .text("stopReason", stop_reason(message))
            .text_if("errorMessage", meta.error_message.as_deref());
    }
    if message.role == Role::Custom {
        fresh = fresh
            .text("customType", meta.custom_type.as_deref().unwrap_or("imported"))
            .plain("display", !meta.hidden);
    }
    fresh
        .plain_if("tokensBefore", meta.tokens_before)
        .plain("timestamp", meta.timestamp.unwrap_or_default().0)
}

fn stop_reason(message: &Message) -> &str {
    match message.meta.stop_reason.as_deref() {
        Some("end_turn" | "stop_sequence" | "completed") => "stop",
        Some("tool_use" | "tool_calls" | "function_call") => "toolUse",
        Some("max_tokens") => "length",
        Some(reason) => reason,
        None if message.tool_calls().next().is_some() => "toolUse",
        None => "stop",
    }
}

/// Writes usage in pi's format, with a cost of zero, because it is unknown.
fn usage_json(usage: &Usage) -> String {
    let parts = |fresh: ObjectWriter,
                 [input, output, read, write, total]: [u64; 5],
                 total_key: &str| {
        let fresh = fresh.plain("input", input).plain("output", output).plain("cacheRead", read);
        fresh.plain("cacheWrite", write).plain(total_key, total)
    };
    let numbers = [usage.input, usage.output, usage.cache_read, usage.cache_write, usage.total()];
    let cost = parts(ObjectWriter::new(), [0; 5], "total").end();
    parts(ObjectWriter::new(), numbers, "totalTokens").raw("cost", cost).end()
}

fn block_json(block: &Block) -> String {
    match block {
        Block::Text { text } => text_block(text),
        Block::Thinking { thinking, signature } => ObjectWriter::new()
            .text("type", "thinking")
            .text("thinking", thinking)
            .text_if("thinkingSignature", signature.as_deref())
            .end(),
        Block::ToolCall(call) => ObjectWriter::new()
            .text("type", "toolCall")
            .text("id", &call.id)
            .text("name", &call.name)
            .raw("arguments", arguments_object(&call.arguments))
            .end(),
        Block::Image(image) if image.is_url => text_block(&shape::block_text(block)),
        Block::Image(image) => ObjectWriter::new()
            .text("type", "image")
            .text("data", &image.data)
            .text("mimeType", &image.mime_type)
            .end(),
        Block::Opaque { json } => json.as_str().to_owned(),
        // After the split, results and commands are never inside other content.
        Block::ToolResult(_) | Block::Bash(_) => text_block(&shape::block_text(block)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stored_role_round_trips() {
        for json in [
            r#"{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image","data":"aGk=","mimeType":"image/png"}],"timestamp":5}"#,
            r#"{"role":"toolResult","toolCallId":"t1","toolName":"read","content":[{"type":"text","text":"x"}],"isError":true,"timestamp":5}"#,
            r#"{"role":"bashExecution","command":"ls","output":"a","exitCode":0,"cancelled":false,"truncated":false,"timestamp":5}"#,
            r#"{"role":"custom","content":[{"type":"text","text":"n"}],"customType":"x","display":true,"timestamp":5}"#,
            r#"{"role":"custom","content":[{"type":"text","text":"n"}],"customType":"x","display":false,"timestamp":5}"#,
            r#"{"role":"compactionSummary","summary":"s","tokensBefore":9,"timestamp":5}"#,
            r#"{"role":"branchSummary","summary":"s","timestamp":5}"#,
            r#"{"role":"hologram","payload":{"deep":[1.50]}}"#,
        ] {
            assert_eq!(write(&parse(json).unwrap()), [json]);
        }
    }

    #[test]
    fn an_assistant_message_keeps_its_parts() {
        let json = r#"{"role":"assistant","content":[{"type":"thinking","thinking":"t","thinkingSignature":"s"},{"type":"text","text":"x"},{"type":"toolCall","id":"c","name":"read","arguments":{"b":1,"a":1.50}}],"api":"a","provider":"p","model":"m","usage":{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"totalTokens":10,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stopReason":"toolUse","timestamp":5}"#;
        let message = parse(json).unwrap();
        assert_eq!(message.blocks.len(), 3);
        assert_eq!(message.meta.usage.unwrap().prompt(), 8);
        assert_eq!(write(&message), [json]);
    }

    #[test]
    fn all_four_spellings_are_calls() {
        for spelling in ["tool_use", "toolUse", "toolCall", "functionCall"] {
            let json = format!(
                r#"{{"role":"assistant","content":[{{"type":"{spelling}","id":"c","name":"n","input":{{}}}}]}}"#
            );
            let message = parse(&json).unwrap();
            let call = message.tool_calls().next().unwrap();
            assert_eq!(Some(call.spelling), crate::block::spelling_of(spelling));
            assert_eq!(&*call.id, "c");
        }
    }

    #[test]
    fn any_json_is_accepted() {
        for json in ["5", "null", "[]", "{}", r#"{"role":5}"#, r#"{"role":"user","content":7}"#] {
            assert!(parse(json).is_ok(), "{json}");
        }
        assert!(parse("{").is_err());
    }
}

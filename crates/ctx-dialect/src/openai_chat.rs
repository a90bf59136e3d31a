//! OpenAI Chat Completions messages, which many other providers use as well.

use std::borrow::Cow;

use ctx_core::{Block, CallSpelling, Image, Message, Meta, RawJson, Result, Role, ToolCall, Usage};
use serde_json::value::RawValue;

use crate::block;
use crate::json::{
    JsonElement, Object, ObjectWriter, arguments_text, array, quote, text_block, value,
};
use crate::shape::{block_text, parts, results_after_calls, texts};

/// The fields in which compatible providers return reasoning. The field name is stored as the
/// thinking block's signature, because these providers expect reasoning back in the same field.
pub(crate) const REASONING: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_text"];

/// The name of the system role for newer models.
const DEVELOPER: &str = "developer";

/// Whether a thinking block's signature is only a field name, not a real signature.
pub(crate) fn names_a_field(signature: &str) -> bool {
    REASONING.contains(&signature)
}

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
    read(&JsonElement::of(raw), tool_calls)
}

/// Like [`parse_raw`], but parses the calls with `calls`.
pub(crate) fn read(element: &JsonElement<'_>, calls: fn(&Object<'_>) -> Vec<Block>) -> Message {
    let Some(object) = &element.object else { return block::opaque_message(element.raw) };
    let name = object.text("role").unwrap_or_else(|| "unknown".into());
    let role = Role::from_name(&name);
    let blocks = match role {
        Role::ToolResult => vec![Block::ToolResult(block::result_of(object))],
        _ => blocks(object, calls),
    };
    let meta = Meta {
        name: object.owned("name").filter(|_| role != Role::ToolResult),
        custom_type: (name == DEVELOPER).then(|| DEVELOPER.to_owned()),
        timestamp: object.integer("timestamp").map(ctx_core::Timestamp),
        model: object.owned("model"),
        usage: object.object("usage").map(|u| usage(&u).unwrap_or_else(|| crate::pi::usage(&u))),
        ..Meta::default()
    };
    Message { role, blocks, meta }
}

fn blocks(object: &Object<'_>, calls: fn(&Object<'_>) -> Vec<Block>) -> Vec<Block> {
    let mut blocks = Vec::new();
    let reasoning =
        REASONING.iter().find_map(|key| Some((*key, object.owned(key).filter(|t| !t.is_empty())?)));
    if let Some((key, thinking)) = reasoning {
        blocks.push(Block::Thinking { thinking, signature: Some(key.to_owned()) });
    }
    blocks.extend(block::content(object.get("content")));
    if let Some(refusal) = object.owned("refusal") {
        blocks.push(Block::text(refusal));
    }
    blocks.extend(calls(object));
    if let Some(call) = object.object("function_call") {
        blocks.push(Block::ToolCall(call_of(&call)));
    }
    blocks
}

pub(crate) fn tool_calls(object: &Object<'_>) -> Vec<Block> {
    calls_by(object, call_of)
}

/// Parses each call of a message with `parse`.
pub(crate) fn calls_by(
    object: &Object<'_>,
    mut parse: impl FnMut(&Object<'_>) -> ToolCall,
) -> Vec<Block> {
    let list = |key| object.get(key).and_then(JsonElement::all);
    let calls = list("tool_calls").or_else(|| list("toolCalls")).unwrap_or_default();
    let one = |call: &JsonElement<'_>| match &call.object {
        Some(object) => Block::ToolCall(parse(object)),
        None => Block::Opaque { json: RawJson::from_text(call.raw) },
    };
    calls.iter().map(one).collect()
}

pub(crate) fn call_of(call: &Object<'_>) -> ToolCall {
    // A custom tool's input is free text, which stays a JSON string.
    match call.object("custom") {
        Some(custom) => {
            let mut found = block::call_of(&custom, CallSpelling::default(), false);
            found.id = block::call_id(call, &["id", "call_id"]);
            found
        }
        None => block::call_of(call, CallSpelling::default(), true),
    }
}

/// Parses the usage of an answer; `None` without a prompt count. That count includes cached tokens.
pub(crate) fn usage(usage: &Object<'_>) -> Option<Usage> {
    let prompt = usage.count("prompt_tokens").or_else(|| usage.count("input_tokens"))?;
    let details = usage
        .object("prompt_tokens_details")
        .or_else(|| usage.object("input_tokens_details"))
        .unwrap_or_default();
    // DeepSeek uses another field.
    let cached = details.count("cached_tokens").or_else(|| usage.count("prompt_cache_hit_tokens"));
    let cached = cached.unwrap_or_default().min(prompt);
    let output = usage.count("completion_tokens").or_else(|| usage.count("output_tokens"));
    Some(Usage {
        input: prompt - cached,
        output: output.unwrap_or_default(),
        cache_read: cached,
        total_tokens: usage.count("total_tokens"),
        ..Usage::default()
    })
}

/// Writes a conversation. Each tool result becomes a separate message right after the calls,
/// wherever it was. Images in results follow in a user message, because `tool` messages contain
/// only text.
#[must_use]
pub fn write<'m>(messages: impl IntoIterator<Item = &'m Message>) -> Vec<RawJson> {
    let mut out = Vec::new();
    let mut images: Vec<Block> = Vec::new();
    for part in results_after_calls(messages.into_iter().flat_map(parts).collect()) {
        if part.role != Role::ToolResult {
            flush_images(&mut images, &mut out);
        }
        for result in part.tool_results() {
            let pictures = result.content.iter().filter(|b| matches!(b, Block::Image(_)));
            images.extend(pictures.cloned());
        }
        out.extend(one(&part).map(RawJson::from_text));
    }
    flush_images(&mut images, &mut out);
    out
}

/// Whether [`write()`] can represent a block: thinking needs a field name, and an answer cannot
/// contain other providers' blocks.
#[must_use]
pub fn keeps(role: &Role, block: &Block) -> bool {
    match block {
        Block::Thinking { signature, .. } => signature.as_deref().is_some_and(names_a_field),
        Block::Opaque { .. } => *role != Role::Assistant,
        _ => true,
    }
}

fn flush_images(images: &mut Vec<Block>, out: &mut Vec<RawJson>) {
    if images.is_empty() {
        return;
    }
    let mut blocks = vec![Block::text("Images from the tool results above:")];
    blocks.append(images);
    out.extend(one(&Message::new(Role::User, blocks)).map(RawJson::from_text));
}

fn one(message: &Message) -> Option<String> {
    match &message.role {
        Role::Assistant => assistant(message),
        Role::ToolResult => {
            let result = message.tool_results().next()?;
            let fresh = ObjectWriter::new()
                .text("role", "tool")
                .text("tool_call_id", &result.call_id)
                .text("content", &texts(&result.content));
            Some(fresh.end())
        }
        Role::System => {
            let text = texts(&message.blocks);
            let developer = message.meta.custom_type.as_deref() == Some(DEVELOPER);
            let role = if developer { DEVELOPER } else { "system" };
            Some(speaker(role, message).text("content", &text).end())
        }
        _ => {
            let content = content(&message.blocks)?;
            Some(speaker("user", message).raw("content", content).end())
        }
    }
}

fn speaker(role: &str, message: &Message) -> ObjectWriter {
    ObjectWriter::new().text("role", role).text_if("name", message.meta.name.as_deref())
}

fn assistant(message: &Message) -> Option<String> {
    let mut text: Vec<Cow<'_, str>> = Vec::new();
    let mut fresh = speaker("assistant", message);
    let mut calls = Vec::new();
    for block in &message.blocks {
        match block {
            Block::Text { text: t } => text.push(Cow::Borrowed(t)),
            Block::ToolCall(call) => calls.push(call_json(call)),
            Block::Thinking { thinking, signature } => {
                let field = signature.as_deref().and_then(|s| REASONING.iter().find(|r| **r == s));
                if let Some(field) = field {
                    fresh = fresh.text(field, thinking);
                }
            }
            // Other providers' blocks are dropped: an assistant message contains only text.
            Block::Opaque { .. } => {}
            other => text.push(Cow::Owned(block_text(other))),
        }
    }
    let text = text.join("\n");
    fresh = match (text.is_empty(), calls.is_empty()) {
        (true, true) => return None,
        (true, false) => fresh.raw("content", "null"),
        (false, _) => fresh.text("content", &text),
    };
    Some(fresh.raw_if("tool_calls", (!calls.is_empty()).then(|| array(calls))).end())
}

pub(crate) fn call_json(call: &ctx_core::ToolCall) -> String {
    let function = ObjectWriter::new()
        .text("name", &call.name)
        .text("arguments", &arguments_text(&call.arguments))
        .end();
    ObjectWriter::new()
        .text("id", &call.id)
        .text("type", "function")
        .raw("function", function)
        .end()
}

/// Writes the content of a user message; as a string if it is only text.
fn content(blocks: &[Block]) -> Option<String> {
    if blocks.is_empty() {
        return None;
    }
    if blocks.iter().all(|b| matches!(b, Block::Text { .. })) {
        return Some(quote(&texts(blocks)));
    }
    Some(array(blocks.iter().map(part)))
}

/// Writes a block as a content part.
pub(crate) fn part(block: &Block) -> String {
    match block {
        Block::Image(image) => {
            let url = ObjectWriter::new().text("url", &image_url(image)).end();
            ObjectWriter::new().text("type", "image_url").raw("image_url", url).end()
        }
        Block::Opaque { json } if is_part(json) => json.as_str().to_owned(),
        block => text_block(&block_text(block)),
    }
}

/// Whether a value is a user message part that the API accepts but this crate does not parse.
fn is_part(json: &RawJson) -> bool {
    Object::parse(json.as_str())
        .is_ok_and(|o| o.text("type").is_some_and(|t| t == "input_audio" || t == "file"))
}

/// Returns the address of an image; of an inline one, a `data:` URL.
#[must_use]
pub fn image_url(image: &Image) -> String {
    if image.is_url {
        return image.data.to_string();
    }
    let mime = if image.mime_type.is_empty() { "image/png" } else { &image.mime_type };
    format!("data:{mime};base64,{}", image.data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_conversation_round_trips() {
        let wire = [
            r#"{"role":"system","content":"s"}"#,
            r#"{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}]}"#,
            r#"{"role":"assistant","reasoning_content":"hm","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{\"p\": 1.50}"}},{"id":"c2","type":"function","function":{"name":"now","arguments":""}}]}"#,
            r#"{"role":"tool","tool_call_id":"c1","content":"one"}"#,
            r#"{"role":"tool","tool_call_id":"c2","content":"two"}"#,
            r#"{"role":"assistant","content":"done"}"#,
        ];
        let messages: Vec<_> = wire.iter().map(|json| parse(json).unwrap()).collect();
        let call = messages[2].tool_calls().next().unwrap();
        assert_eq!(call.arguments.as_str(), r#"{"p": 1.50}"#);
        let written = write(&messages);
        let written: Vec<_> = written.iter().map(RawJson::as_str).collect();
        assert_eq!(written, wire);
    }

    #[test]
    fn the_developer_role_and_names_are_kept() {
        let wire = [
            r#"{"role":"developer","content":"be brief"}"#,
            r#"{"role":"user","name":"ann","content":"hi"}"#,
            r#"{"role":"assistant","name":"bot","content":"ho"}"#,
        ];
        let messages: Vec<_> = wire.iter().map(|json| parse(json).unwrap()).collect();
        let written = write(&messages);
        assert_eq!(written.iter().map(RawJson::as_str).collect::<Vec<_>>(), wire);
    }

    #[test]
    fn results_follow_their_calls() {
        let calls = r#"{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"n"}},{"id":"b","function":{"name":"n"}}]}"#;
        let mut mixed = Message::tool_result("a", "1");
        mixed.blocks.push(Block::text("wait"));
        let written = write(&[
            parse(calls).unwrap(),
            mixed,
            Message::tool_result("b", "2"),
            Message::tool_result("orphan", "3"),
        ]);
        let ids: Vec<_> = written
            .iter()
            .map(|json| {
                let object = Object::parse(json.as_str()).unwrap();
                object.owned("tool_call_id").or_else(|| object.owned("role")).unwrap()
            })
            .collect();
        assert_eq!(ids, ["assistant", "a", "b", "user", "orphan"]);
    }

    #[test]
    fn merged_results_are_split_and_images_follow() {
        let mut results = Message::tool_result("a", "1");
        results.blocks.extend(Message::tool_result("b", "2").blocks);
        if let Block::ToolResult(result) = &mut results.blocks[0] {
            let image = Image { mime_type: "image/png".into(), data: "aa".into(), is_url: false };
            result.content.push(Block::Image(image));
        }
        let written = write(&[results, Message::text(Role::User, "next")]);
        let roles: Vec<_> = written
            .iter()
            .map(|json| Object::parse(json.as_str()).unwrap().owned("role").unwrap())
            .collect();
        assert_eq!(roles, ["tool", "tool", "user", "user"]);
    }
}

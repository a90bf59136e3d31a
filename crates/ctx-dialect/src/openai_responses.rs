//! Items of OpenAI's Responses API, which Codex also stores in its rollouts.

use ctx_core::{Block, CallSpelling, Message, Meta, RawJson, Result, Role, ToolCall};
use serde_json::value::RawValue;

use crate::block;
use crate::json::{JsonElement, Object, ObjectWriter, arguments_text, array, elements, value};
use crate::openai_chat::image_url;
use crate::shape::{as_user_text, block_text, split_results, texts};

/// The fields for the arguments of tools with their own item types.
pub(crate) const ARGUMENTS: [&str; 4] = ["action", "operation", "arguments", "actions"];

/// Parses one item as a message. An answer consists of several items, which the transcript reader
/// merges.
///
/// # Errors
///
/// [`Corrupt`](ctx_core::ErrorKind::Corrupt) if the text is not JSON.
pub fn parse(json: &str) -> Result<Message> {
    value(json).map(parse_raw)
}

/// Parses one item from a valid JSON value.
#[must_use]
pub fn parse_raw(raw: &RawValue) -> Message {
    read(&JsonElement::of(raw))
}

/// Parses one item from an element of a list.
pub(crate) fn read(element: &JsonElement<'_>) -> Message {
    let Some(object) = &element.object else {
        let content = serde_json::from_str(element.raw).ok();
        return Message::new(Role::User, block::content(content));
    };
    let opaque = || vec![Block::Opaque { json: RawJson::from_text(element.raw) }];
    let role = item_role(object);
    let kind = object.text("type").unwrap_or_else(|| "message".into());
    let blocks = match &*kind {
        "message" => block::content(object.get("content")),
        "reasoning" => vec![reasoning(object)],
        "function_call" | "custom_tool_call" => {
            let stringly = kind == "function_call";
            vec![Block::ToolCall(block::call_of(object, CallSpelling::default(), stringly))]
        }
        kind if kind.ends_with("_call") && is_answered(object) => {
            vec![Block::ToolCall(named_call(kind, object))]
        }
        kind if kind.ends_with("_output") && is_answered(object) => {
            vec![Block::ToolResult(result(object, element.raw))]
        }
        _ => opaque(),
    };
    let meta = Meta { response_id: object.owned("id"), ..Meta::default() };
    Message { role, blocks, meta }
}

/// Whether a call and its output are separate items linked by an id. Tools run by the provider put
/// both into one item.
fn is_answered(object: &Object<'_>) -> bool {
    object.text("call_id").is_some_and(|id| !id.is_empty())
}

/// Parses the call of a tool with its own item type: `local_shell_call`, `computer_call`,
/// `apply_patch_call`.
fn named_call(kind: &str, object: &Object<'_>) -> ToolCall {
    let arguments = object.first(&ARGUMENTS);
    let name = object.owned("name").unwrap_or_else(|| kind.trim_end_matches("_call").to_owned());
    let arguments = arguments.map_or_else(|| RawJson::from_text("{}"), RawJson::from);
    ToolCall::new(block::call_id(object, &["call_id"]), name, arguments)
}

/// Returns the role of an item.
#[must_use]
pub fn item_role(object: &Object<'_>) -> Role {
    match object.text("type").as_deref() {
        None | Some("message") => Role::from_name(&object.text("role").unwrap_or("user".into())),
        Some(kind) if kind.ends_with("_output") && is_answered(object) => Role::ToolResult,
        Some(kind) if kind.ends_with("_output") => Role::Assistant,
        Some(kind) if kind.ends_with("_call") || kind == "reasoning" => Role::Assistant,
        Some(kind) => Role::Other(kind.into()),
    }
}

/// Parses the readable part of the reasoning; the encrypted part becomes its signature.
fn reasoning(object: &Object<'_>) -> Block {
    let parts = |key| Message::new(Role::Assistant, block::content(object.get(key))).plain_text();
    let full = Object::array(object, "content").map(|items| {
        let texts = items.into_iter().filter_map(|raw| Object::of(raw)?.owned("text"));
        texts.collect::<Vec<_>>().join("\n")
    });
    let thinking = full.filter(|text| !text.is_empty()).unwrap_or_else(|| parts("summary"));
    Block::Thinking { thinking, signature: object.owned("encrypted_content") }
}

/// Parses a result. Codex stores some outputs as JSON text
/// `{"output": .., "metadata": {"exit_code": ..}}`. Output of tools with their own item types is
/// not text and may be long, so it becomes opaque.
fn result(object: &Object<'_>, raw: &str) -> ctx_core::ToolResult {
    let mut result = block::result_of(object);
    if object.first(&["output", "content"]).is_none() {
        result.content = vec![Block::Opaque { json: RawJson::from_text(raw) }];
    }
    if let Some(output) = object.object("output") {
        result.is_error =
            result.is_error || output.get("success").is_some_and(|s| s.get() == "false");
        let inner = output.get("content").or_else(|| object.get("output"));
        result.content = block::result_content(inner);
    }
    result
}

/// Writes a conversation as `input` items. Reasoning is included only with its signature.
#[must_use]
pub fn write<'m>(messages: impl IntoIterator<Item = &'m Message>) -> Vec<RawJson> {
    let mut out = Vec::new();
    for message in messages {
        let Some(message) = as_user_text(message) else { continue };
        for part in split_results(&message) {
            items(&part, &mut out);
        }
    }
    out.into_iter().map(RawJson::from_text).collect()
}

fn items(message: &Message, out: &mut Vec<String>) {
    let (role, text_type) = match &message.role {
        Role::Assistant => ("assistant", "output_text"),
        Role::System => ("developer", "input_text"),
        _ => ("user", "input_text"),
    };
    let mut content: Vec<String> = Vec::new();
    let flush = |content: &mut Vec<String>, out: &mut Vec<String>| {
        if !content.is_empty() {
            let parts = array(content.drain(..));
            let fresh = ObjectWriter::new().text("type", "message").text("role", role);
            out.push(fresh.raw("content", parts).end());
        }
    };
    for block in &message.blocks {
        let item = match block {
            Block::ToolCall(call) => call_json(call),
            Block::ToolResult(result) => result_json(result),
            Block::Thinking { thinking, signature: Some(signature) } => {
                let Some(json) = reasoning_json(thinking, signature) else { continue };
                json
            }
            Block::Thinking { signature: None, .. } => continue,
            Block::Opaque { json } if is_item(json) => json.as_str().to_owned(),
            block => {
                content.push(part(block, text_type));
                continue;
            }
        };
        flush(&mut content, out);
        out.push(item);
    }
    flush(&mut content, out);
}

/// Writes a block as a content part.
pub(crate) fn part(block: &Block, text_type: &str) -> String {
    match block {
        Block::Image(image) if text_type == "input_text" => ObjectWriter::new()
            .text("type", "input_image")
            .text("image_url", &image_url(image))
            .end(),
        block => ObjectWriter::new().text("type", text_type).text("text", &block_text(block)).end(),
    }
}

fn call_json(call: &ToolCall) -> String {
    ObjectWriter::new()
        .text("type", "function_call")
        .text("call_id", &call.id)
        .text("name", &call.name)
        .text("arguments", &arguments_text(&call.arguments))
        .end()
}

fn result_json(result: &ctx_core::ToolResult) -> String {
    let fresh =
        ObjectWriter::new().text("type", "function_call_output").text("call_id", &result.call_id);
    if result.content.iter().any(|b| matches!(b, Block::Image(_))) {
        let parts = array(result.content.iter().map(|block| part(block, "input_text")));
        return fresh.raw("output", parts).end();
    }
    fresh.text("output", &texts(&result.content)).end()
}

/// Writes reasoning as an item. The signature is the encrypted text or, as stored by pi, the whole
/// item. Returns `None` for an item without encrypted text: the API could find it only by id, and
/// only if it was stored.
fn reasoning_json(thinking: &str, signature: &str) -> Option<String> {
    let item = Object::parse(signature).ok();
    let sealed = match &item {
        Some(item) => item.text("encrypted_content")?,
        None => signature.into(),
    };
    let kept = item.as_ref().and_then(|item| item.get("summary"));
    let summary = match kept.filter(|raw| elements(raw).is_some()) {
        Some(summary) => summary.get().to_owned(),
        None if thinking.is_empty() => array::<&str>([]),
        None => {
            array([ObjectWriter::new().text("type", "summary_text").text("text", thinking).end()])
        }
    };
    let fresh = ObjectWriter::new().text("type", "reasoning").raw("summary", summary);
    Some(fresh.text("encrypted_content", &sealed).end())
}

/// Whether an opaque value is an item (a web search, for example), not a content part.
fn is_item(json: &RawJson) -> bool {
    Object::parse(json.as_str()).is_ok_and(|o| {
        o.text("type")
            .is_some_and(|t| t.ends_with("_call") || t.ends_with("_output") || t == "compaction")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_with_a_call_id_are_calls_and_provider_run_tools_are_not() {
        for (json, name) in [
            (r#"{"type":"local_shell_call","call_id":"c","action":{"a":1}}"#, "local_shell"),
            (r#"{"type":"apply_patch_call","call_id":"c","operation":{"a":1}}"#, "apply_patch"),
            (r#"{"type":"tool_search_call","call_id":"c","arguments":{"a":1}}"#, "tool_search"),
        ] {
            let message = parse(json).unwrap();
            let call = message.tool_calls().next().unwrap();
            assert_eq!((call.name.as_str(), call.arguments.as_str()), (name, r#"{"a":1}"#));
        }
        let found = parse(r#"{"type":"tool_search_output","call_id":"c","tools":[]}"#).unwrap();
        assert_eq!(found.tool_results().count(), 1);
        for json in [
            r#"{"type":"tool_search_call","call_id":null,"arguments":{}}"#,
            r#"{"type":"tool_search_output","call_id":null,"tools":[]}"#,
            r#"{"type":"web_search_call","id":"ws_1"}"#,
        ] {
            let message = parse(json).unwrap();
            assert!(matches!(message.blocks[..], [Block::Opaque { .. }]), "{json}");
            assert_eq!(message.role, Role::Assistant);
        }
    }

    #[test]
    fn items_round_trip() {
        let wire = [
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}"#,
            r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"zz"}"#,
            r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"ok"}]}"#,
            r#"{"type":"function_call","call_id":"c","name":"sh","arguments":"{\"a\":1}"}"#,
            r#"{"type":"function_call_output","call_id":"c","output":"out"}"#,
            r#"{"type":"web_search_call","action":{"q":"x"}}"#,
        ];
        let messages: Vec<_> = wire.iter().map(|json| parse(json).unwrap()).collect();
        let roles: Vec<_> = messages.iter().map(|m| m.role.name().to_owned()).collect();
        assert_eq!(
            roles,
            ["user", "assistant", "assistant", "assistant", "toolResult", "assistant"]
        );
        let written = write(&messages);
        assert_eq!(written.iter().map(RawJson::as_str).collect::<Vec<_>>(), wire);
    }
}

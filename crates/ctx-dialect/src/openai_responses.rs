//! Items of OpenAI's Responses API, which Codex also stores in its rollouts.

use ctx_core::{Block, CallSpelling, Message, Meta, RawJson, Result, Role, ToolCall};
use serde_json::value::RawValue;

use crate::block;
use crate::json::{Fresh, Object, arguments_text, array, elements, value};
use crate::openai_chat::image_url;
use crate::shape::{as_user_text, block_text, split_results, texts};

/// Reads one item as a message of its own. One answer is several items: the reader of a
/// transcript puts them together.
///
/// # Errors
///
/// [`Corrupt`](ctx_core::ErrorKind::Corrupt) if the text is not JSON.
pub fn parse(json: &str) -> Result<Message> {
    value(json).map(parse_raw)
}

/// Reads one item from a value that is known to be JSON.
#[must_use]
pub fn parse_raw(raw: &RawValue) -> Message {
    let Some(object) = Object::of(raw) else {
        let blocks = block::content(Some(raw));
        return Message::new(Role::User, blocks);
    };
    let opaque = || vec![Block::Opaque { json: RawJson::from(raw) }];
    let role = item_role(&object);
    let kind = object.text("type").unwrap_or_else(|| "message".into());
    let blocks = match &*kind {
        "message" => block::content(object.get("content")),
        "reasoning" => vec![reasoning(&object)],
        "function_call" | "custom_tool_call" => {
            let stringly = kind == "function_call";
            vec![Block::ToolCall(block::call_of(&object, CallSpelling::default(), stringly))]
        }
        "local_shell_call" => vec![Block::ToolCall(ToolCall {
            id: block::call_id(&object, &["call_id", "id"]),
            name: "local_shell".to_owned(),
            arguments: object.get("action").map_or_else(|| RawJson::from_text("{}"), RawJson::from),
            spelling: CallSpelling::default(),
        })],
        kind if kind.ends_with("_output") => vec![Block::ToolResult(result(&object))],
        _ => opaque(),
    };
    let meta = Meta { response_id: object.owned("id"), ..Meta::default() };
    Message { role, blocks, meta }
}

/// Who wrote an item.
#[must_use]
pub fn item_role(object: &Object<'_>) -> Role {
    match object.text("type").as_deref() {
        None | Some("message") => Role::from_name(&object.text("role").unwrap_or("user".into())),
        Some(kind) if kind.ends_with("_output") => Role::ToolResult,
        Some(kind) if kind.ends_with("_call") || kind == "reasoning" => Role::Assistant,
        Some(kind) => Role::Other(kind.into()),
    }
}

/// The readable part of the reasoning; the encrypted part is its signature.
fn reasoning(object: &Object<'_>) -> Block {
    let parts = |key| Message::new(Role::Assistant, block::content(object.get(key))).plain_text();
    let full = Object::array(object, "content").map(|items| {
        let texts = items.into_iter().filter_map(|raw| Object::of(raw)?.owned("text"));
        texts.collect::<Vec<_>>().join("\n")
    });
    let thinking = full.filter(|text| !text.is_empty()).unwrap_or_else(|| parts("summary"));
    Block::Thinking { thinking, signature: object.owned("encrypted_content") }
}

/// Codex stores some outputs as JSON text `{"output": .., "metadata": {"exit_code": ..}}`.
fn result(object: &Object<'_>) -> ctx_core::ToolResult {
    let mut result = block::result_of(object);
    if let Some(output) = object.object("output") {
        result.is_error =
            result.is_error || output.get("success").is_some_and(|s| s.get() == "false");
        result.content = block::result_content(output.get("content"));
    }
    result
}

/// Writes a conversation as `input` items. Reasoning goes along only with its proof.
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
            let fresh = Fresh::new().text("type", "message").text("role", role);
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

/// A block as a part of a content.
pub(crate) fn part(block: &Block, text_type: &str) -> String {
    match block {
        Block::Image(image) if text_type == "input_text" => {
            Fresh::new().text("type", "input_image").text("image_url", &image_url(image)).end()
        }
        block => Fresh::new().text("type", text_type).text("text", &block_text(block)).end(),
    }
}

fn call_json(call: &ToolCall) -> String {
    Fresh::new()
        .text("type", "function_call")
        .text("call_id", &call.id)
        .text("name", &call.name)
        .text("arguments", &arguments_text(&call.arguments))
        .end()
}

fn result_json(result: &ctx_core::ToolResult) -> String {
    let fresh = Fresh::new().text("type", "function_call_output").text("call_id", &result.call_id);
    if result.content.iter().any(|b| matches!(b, Block::Image(_))) {
        let parts = array(result.content.iter().map(|block| part(block, "input_text")));
        return fresh.raw("output", parts).end();
    }
    fresh.text("output", &texts(&result.content)).end()
}

/// The signature is the encrypted text, or, as pi keeps it, the whole item. `None` for an item that
/// holds none: the API finds it by its id alone, and only where it was told to store it.
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
        None => array([Fresh::new().text("type", "summary_text").text("text", thinking).end()]),
    };
    let fresh = Fresh::new().text("type", "reasoning").raw("summary", summary);
    Some(fresh.text("encrypted_content", &sealed).end())
}

/// Whether a carried value is an item of its own (a web search, for example), not a content part.
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

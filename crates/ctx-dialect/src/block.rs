//! A tolerant parser for the blocks of all dialects.
//!
//! Agents copy messages from one provider's shape into another's, so a block is recognised by its
//! content, not by the surrounding dialect: all four tool-call spellings are accepted everywhere.

use std::borrow::Cow;

use ctx_core::{Block, CallId, CallSpelling, Image, Message, RawJson, Role, ToolCall, ToolResult};
use serde_json::value::RawValue;

use crate::json::{JsonElement, Object, identifier, string, string_of, unwrap_arguments};

/// The fields that may contain the id of a call, and the fields for the id of a result.
pub(crate) const CALL_IDS: [&str; 4] = ["call_id", "id", "toolCallId", "toolUseId"];
pub(crate) const RESULT_IDS: [&str; 6] =
    ["tool_use_id", "toolCallId", "toolUseId", "tool_call_id", "call_id", "id"];

/// Wraps a value that is not a message in an opaque message.
pub(crate) fn opaque_message(raw: &str) -> Message {
    Message::new(Role::from_name("unknown"), vec![opaque(raw)])
}

/// Returns the role of a message with these blocks. Providers without a role for tools put results,
/// and nothing else, into a user message.
pub(crate) fn role_with(role: Role, blocks: &[Block]) -> Role {
    let only_results =
        !blocks.is_empty() && blocks.iter().all(|b| matches!(b, Block::ToolResult(_)));
    if role == Role::User && only_results { Role::ToolResult } else { role }
}

/// Parses `content`: a string, an array of blocks, or a single block.
pub(crate) fn content(raw: Option<&RawValue>) -> Vec<Block> {
    read(raw, block)
}

/// Parses the content of a tool result. Calls and results inside it become opaque blocks.
pub(crate) fn result_content(raw: Option<&RawValue>) -> Vec<Block> {
    read(raw, |element| match &element.object {
        Some(object) => simple(object).unwrap_or_else(|| opaque(element.raw)),
        None => leaf(element.raw),
    })
}

fn read(raw: Option<&RawValue>, one: impl Fn(&JsonElement<'_>) -> Block) -> Vec<Block> {
    let Some(raw) = raw.filter(|raw| raw.get() != "null") else { return Vec::new() };
    match JsonElement::all(raw) {
        Some(items) => items.iter().map(one).collect(),
        None => vec![one(&JsonElement::of(raw))],
    }
}

/// Parses one block of any dialect.
fn block(element: &JsonElement<'_>) -> Block {
    let Some(object) = &element.object else { return leaf(element.raw) };
    call(object)
        .map(Block::ToolCall)
        .or_else(|| result(object).map(Block::ToolResult))
        .or_else(|| simple(object))
        .unwrap_or_else(|| opaque(element.raw))
}

fn leaf(raw: &str) -> Block {
    match string_of(raw) {
        Some(text) => Block::text(text),
        None => opaque(raw),
    }
}

fn opaque(raw: &str) -> Block {
    Block::Opaque { json: RawJson::from_text(raw) }
}

/// Parses text, thinking and images.
fn simple(object: &Object<'_>) -> Option<Block> {
    match object.text("type").as_deref() {
        Some("text" | "input_text" | "output_text" | "summary_text") => {
            Some(Block::text(object.text("text")?))
        }
        Some("refusal") => Some(Block::text(object.text("refusal")?)),
        Some("thinking") => Some(Block::Thinking {
            thinking: object.owned("thinking").or_else(|| object.owned("text")).unwrap_or_default(),
            signature: object.owned("signature").or_else(|| object.owned("thinkingSignature")),
        }),
        Some("image" | "image_url" | "input_image") => image(object).map(Block::Image),
        Some(_) => None,
        None if object.is_true("thought") => Some(Block::Thinking {
            thinking: object.owned("text")?,
            signature: object.owned("thoughtSignature"),
        }),
        None => match (object.text("text"), object.object("reasoningContent")) {
            (Some(text), _) => Some(Block::text(text)),
            (None, Some(reasoning)) => {
                let reasoning = reasoning.object("reasoningText")?;
                let thinking = reasoning.owned("text").unwrap_or_default();
                Some(Block::Thinking { thinking, signature: reasoning.owned("signature") })
            }
            (None, None) => image(object).map(Block::Image),
        },
    }
}

fn image(object: &Object<'_>) -> Option<Image> {
    if let Some(data) = object.text("data") {
        let mime = object.text("mimeType").or_else(|| object.text("mime_type"));
        return Some(inline(mime, &data));
    }
    if let Some(url) = object.get("image_url").or_else(|| object.get("url")) {
        let url = string(url).or_else(|| Object::of(url)?.text("url"))?;
        return Some(from_url(&url));
    }
    let nested = object.object("source").or_else(|| object.object("image"));
    if let Some(source) = nested {
        // Bedrock has the bytes one level deeper, and a format instead of a type.
        if let Some((data, format)) = source.object("source").zip(source.text("format")) {
            let mime_type = format!("image/{format}");
            return Some(Image { mime_type, data: data.text("bytes")?.into(), is_url: false });
        }
        if let Some(url) = source.text("url") {
            return Some(from_url(&url));
        }
        return Some(inline(source.text("media_type"), &source.text("data")?));
    }
    if let Some(data) = object.object("inlineData").or_else(|| object.object("inline_data")) {
        let mime = data.text("mimeType").or_else(|| data.text("mime_type"));
        return Some(inline(mime, &data.text("data")?));
    }
    let file = object.object("fileData").or_else(|| object.object("file_data"))?;
    let uri = file.text("fileUri").or_else(|| file.text("file_uri"))?;
    let mime_type = file.owned("mimeType").or_else(|| file.owned("mime_type")).unwrap_or_default();
    Some(Image { mime_type, data: uri.as_ref().into(), is_url: true })
}

fn inline(mime: Option<Cow<'_, str>>, data: &str) -> Image {
    let mime_type = mime.map(Cow::into_owned).unwrap_or_default();
    Image { mime_type, data: data.into(), is_url: false }
}

fn from_url(url: &str) -> Image {
    match url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) {
        Some((mime, data)) => {
            Image { mime_type: mime.to_owned(), data: data.into(), is_url: false }
        }
        None => Image { mime_type: String::new(), data: url.into(), is_url: true },
    }
}

/// Parses a tool call in any spelling: typed, or wrapped (`{"functionCall":{..}}`,
/// `{"toolUse":{..}}`).
fn call(object: &Object<'_>) -> Option<ToolCall> {
    match object.text("type").as_deref() {
        Some("function_call" | "function" | "custom_tool_call") => {
            Some(call_of(object, CallSpelling::default(), true))
        }
        Some(kind) => spelling_of(kind).map(|s| call_of(object, s, false)),
        None => {
            let keys = [
                ("functionCall", CallSpelling::FunctionCall),
                ("function_call", CallSpelling::FunctionCall),
                ("toolUse", CallSpelling::ToolUseCamel),
            ];
            keys.into_iter().find_map(|(key, s)| Some(call_of(&object.object(key)?, s, false)))
        }
    }
}

/// Returns the spelling of calls whose `type` is `kind`.
pub(crate) fn spelling_of(kind: &str) -> Option<CallSpelling> {
    match kind {
        "tool_use" => Some(CallSpelling::ToolUse),
        "toolUse" => Some(CallSpelling::ToolUseCamel),
        "toolCall" => Some(CallSpelling::ToolCall),
        "functionCall" => Some(CallSpelling::FunctionCall),
        _ => None,
    }
}

/// Parses the fields of a call. `stringly`: the arguments are JSON encoded as a string.
pub(crate) fn call_of(object: &Object<'_>, spelling: CallSpelling, stringly: bool) -> ToolCall {
    let function = object.object("function");
    let inner = function.as_ref().unwrap_or(object);
    let arguments = inner.first(&["arguments", "input", "args"]).map_or_else(
        || RawJson::from_text("{}"),
        |raw| if stringly { unwrap_arguments(raw) } else { RawJson::from(raw) },
    );
    let id = call_id(object, &CALL_IDS);
    let name = inner.owned("name").unwrap_or_default();
    // Gemini's calls often have no id; results then refer to the tool's name.
    let id = if id.is_empty() { name.as_str().into() } else { id };
    ToolCall { id, name, arguments, spelling }
}

pub(crate) fn call_id(object: &Object<'_>, keys: &[&str]) -> CallId {
    keys.iter().find_map(|key| identifier(object.get(key)?)).unwrap_or_default().as_ref().into()
}

fn result(object: &Object<'_>) -> Option<ToolResult> {
    match object.text("type").as_deref() {
        Some(
            "tool_result"
            | "toolResult"
            | "function_call_output"
            | "custom_tool_call_output"
            | "functionResponse",
        ) => Some(result_of(object)),
        Some(_) => None,
        None => ["functionResponse", "function_response", "toolResult"]
            .into_iter()
            .find_map(|key| Some(result_of(&object.object(key)?))),
    }
}

/// Parses the fields of a tool result.
pub(crate) fn result_of(object: &Object<'_>) -> ToolResult {
    let name = object.owned("toolName").or_else(|| object.owned("name"));
    let id = call_id(object, &RESULT_IDS);
    let failed = object.text("status").is_some_and(|s| s == "error");
    let (response, refused) = unwrap_response(object.get("response"));
    ToolResult {
        call_id: if id.is_empty() { name.as_deref().unwrap_or_default().into() } else { id },
        content: result_content(object.first(&["content", "output"]).or(response)),
        name,
        is_error: failed || refused || object.is_true("is_error") || object.is_true("isError"),
    }
}

/// Unwraps Gemini's function responses: `{"output": ..}` or `{"error": ..}`.
fn unwrap_response(raw: Option<&RawValue>) -> (Option<&RawValue>, bool) {
    let fields = raw.and_then(Object::of);
    let only = fields.as_ref().filter(|fields| fields.iter().count() == 1);
    let output = only.and_then(|fields| fields.first(&["output", "result", "error"]));
    (output.or(raw), only.is_some_and(|fields| fields.has("error")))
}

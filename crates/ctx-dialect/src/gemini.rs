//! Gemini contents: `{"role": "user" | "model", "parts": [..]}`.

use std::collections::HashMap;

use ctx_core::{Block, CallId, Image, Message, RawJson, Result, Role, ToolResult};
use serde_json::value::RawValue;

use crate::block;
use crate::json::{Fresh, Object, arguments_object, array, value};
use crate::shape::{as_user_text, block_text, texts};

/// Reads a content. One of nothing but function responses gets [`Role::ToolResult`].
///
/// # Errors
///
/// [`Corrupt`](ctx_core::ErrorKind::Corrupt) if the text is not JSON.
pub fn parse(json: &str) -> Result<Message> {
    value(json).map(parse_raw)
}

/// Reads a content from a value that is known to be JSON.
#[must_use]
pub fn parse_raw(raw: &RawValue) -> Message {
    let Some(object) = Object::of(raw) else { return block::no_message(raw) };
    let role = object.text("role").unwrap_or_else(|| "user".into());
    let blocks = block::content(object.get("parts").or_else(|| object.get("content")));
    let role = block::speaker(Role::from_name(&role), &blocks);
    Message::new(role, blocks)
}

/// A conversation as a request takes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// `systemInstruction`, if there is one.
    pub system: Option<RawJson>,
    /// The contents, user and model in turn.
    pub contents: Vec<RawJson>,
}

/// Writes a conversation. Neighbours of one role become one content; a response names the function
/// it answers, found by the call's id. Thinking is left out.
#[must_use]
pub fn write<'m>(messages: impl IntoIterator<Item = &'m Message>) -> Written {
    let mut names: HashMap<CallId, String> = HashMap::new();
    let mut system: Vec<String> = Vec::new();
    let mut turns: Vec<(&'static str, Vec<String>)> = Vec::new();
    for message in messages {
        if message.role == Role::System && turns.is_empty() {
            system.push(text_json(&message.plain_text()));
            continue;
        }
        let Some(message) = as_user_text(message) else { continue };
        names.extend(message.tool_calls().map(|call| (call.id.clone(), call.name.clone())));
        let role = if message.role == Role::Assistant { "model" } else { "user" };
        let parts: Vec<_> = message.blocks.iter().filter_map(|b| part(b, &names)).collect();
        match turns.last_mut().filter(|(last, _)| *last == role) {
            Some((_, known)) => known.extend(parts),
            None => turns.push((role, parts)),
        }
    }
    let content = |(role, parts): (&str, Vec<String>)| {
        let json = Fresh::new().text("role", role).raw("parts", array(parts)).end();
        RawJson::from_text(json)
    };
    let contents = turns.into_iter().filter(|(_, parts)| !parts.is_empty()).map(content).collect();
    let system = (!system.is_empty())
        .then(|| RawJson::from_text(Fresh::new().raw("parts", array(system)).end()));
    Written { system, contents }
}

fn text_json(text: &str) -> String {
    Fresh::new().text("text", text).end()
}

/// A block as a part; `names` are the functions that were called.
pub(crate) fn part(block: &Block, names: &HashMap<CallId, String>) -> Option<String> {
    match block {
        Block::Thinking { .. } => None,
        Block::ToolCall(call) => {
            let inner = Fresh::new()
                .text("id", &call.id)
                .text("name", &call.name)
                .raw("args", arguments_object(&call.arguments));
            Some(Fresh::new().raw("functionCall", inner.end()).end())
        }
        Block::ToolResult(result) => {
            let name =
                result.name.as_deref().or_else(|| Some(names.get(&result.call_id)?.as_str()));
            let inner = Fresh::new()
                .text("id", &result.call_id)
                .text("name", name.unwrap_or(&result.call_id))
                .raw("response", response(result));
            Some(Fresh::new().raw("functionResponse", inner.end()).end())
        }
        Block::Image(image) => Some(image_json(image)),
        Block::Text { text } if text.is_empty() => None,
        block => Some(text_json(&block_text(block))),
    }
}

/// What a function gave back, in the wrapping that says whether it failed.
pub(crate) fn response(result: &ToolResult) -> String {
    let key = if result.is_error { "error" } else { "output" };
    Fresh::new().text(key, &texts(&result.content)).end()
}

fn image_json(image: &Image) -> String {
    if image.is_url {
        let file =
            Fresh::new().text("mimeType", &image.mime_type).text("fileUri", &image.data).end();
        return Fresh::new().raw("fileData", file).end();
    }
    let data = Fresh::new().text("mimeType", &image.mime_type).text("data", &image.data).end();
    Fresh::new().raw("inlineData", data).end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_responses_are_tied_by_name() {
        let wire = [
            r#"{"role":"user","parts":[{"text":"hi"},{"inlineData":{"mimeType":"image/png","data":"aGk="}}]}"#,
            r#"{"role":"model","parts":[{"functionCall":{"id":"f1","name":"now","args":{"tz":1}}}]}"#,
            r#"{"role":"user","parts":[{"functionResponse":{"id":"f1","name":"now","response":{"output":"noon"}}}]}"#,
        ];
        let messages: Vec<_> = wire.iter().map(|json| parse(json).unwrap()).collect();
        assert_eq!(messages[2].role, Role::ToolResult);
        let written = write(&messages);
        let contents: Vec<_> = written.contents.iter().map(RawJson::as_str).collect();
        assert_eq!(contents, wire);
    }

    #[test]
    fn a_call_without_an_id_is_tied_by_its_name() {
        let json = r#"{"role":"model","parts":[{"functionCall":{"name":"now","args":{}}}]}"#;
        assert_eq!(&*parse(json).unwrap().tool_calls().next().unwrap().id, "now");
    }
}

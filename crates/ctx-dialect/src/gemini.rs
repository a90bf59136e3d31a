//! Gemini contents: `{"role": "user" | "model", "parts": [..]}`.

use std::collections::HashMap;

use ctx_core::{Block, CallId, Image, Message, RawJson, Result, Role, ToolResult};
use serde_json::value::RawValue;

use crate::block;
use crate::json::{JsonElement, Object, ObjectWriter, arguments_object, array, value};
use crate::shape::{as_user_text, block_text, texts};

/// Parses a content. A content that consists of function responses gets [`Role::ToolResult`].
///
/// # Errors
///
/// [`Corrupt`](ctx_core::ErrorKind::Corrupt) if the text is not JSON.
pub fn parse(json: &str) -> Result<Message> {
    value(json).map(parse_raw)
}

/// Parses a content from a valid JSON value.
#[must_use]
pub fn parse_raw(raw: &RawValue) -> Message {
    read(&JsonElement::of(raw), &[])
}

fn parsed(element: &JsonElement<'_>) -> Message {
    let Some(object) = &element.object else { return block::opaque_message(element.raw) };
    let role = object.text("role").unwrap_or_else(|| "user".into());
    let mut blocks = block::content(object.get("parts").or_else(|| object.get("content")));
    number(&mut blocks);
    let role = block::role_with(Role::from_name(&role), &blocks);
    Message::new(role, blocks)
}

/// Numbers the ids that were derived from names. A call without an id, and its response, use the
/// name of the function as id. If a content has two with the same name, the second becomes `name#2`
/// on both sides.
fn number(blocks: &mut [Block]) {
    let (mut calls, mut responses) = (NameCounter::default(), NameCounter::default());
    for block in blocks {
        match block {
            Block::ToolCall(call) => calls.number(&call.name, &mut call.id),
            Block::ToolResult(result) => {
                let name = result.name.clone().unwrap_or_default();
                responses.number(&name, &mut result.call_id);
            }
            _ => {}
        }
    }
}

/// Counts repeated names.
#[derive(Default)]
struct NameCounter(HashMap<CallId, usize>);

impl NameCounter {
    fn number(&mut self, name: &str, id: &mut CallId) {
        if !name.is_empty() && **id == *name {
            let count = self.0.entry(CallId::clone(id)).or_insert(0);
            *count += 1;
            if *count > 1 {
                *id = format!("{name}#{count}").into();
            }
        }
    }
}

/// Whether an id was derived from a name rather than assigned by the provider.
fn is_derived(id: &str, name: &str) -> bool {
    let rest = id.strip_prefix(name).map(|rest| rest.strip_prefix('#').unwrap_or(rest));
    rest.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit()))
        && !name.is_empty()
        && (id.len() == name.len() || id.as_bytes().get(name.len()) == Some(&b'#'))
}

/// Parses a content, and replaces the ids of its results, in order; `None` keeps the id.
pub(crate) fn read(element: &JsonElement<'_>, ids: &[Option<CallId>]) -> Message {
    let mut message = parsed(element);
    let results = message.blocks.iter_mut().filter_map(|block| match block {
        Block::ToolResult(result) => Some(result),
        _ => None,
    });
    for (result, id) in results.zip(ids) {
        if let Some(id) = id {
            result.call_id = id.clone();
        }
    }
    message
}

/// The id and name of a call or a response.
#[derive(Clone, Debug)]
pub(crate) struct CallRef {
    /// For a call, the id assigned by [`parse_raw`]. For a response, its own id, if any.
    pub(crate) id: CallId,
    pub(crate) name: String,
}

/// Returns the calls of a content, with the ids of [`parse_raw`].
pub(crate) fn calls(content: &JsonElement<'_>) -> Vec<CallRef> {
    let mut counter = NameCounter::default();
    let numbered = |CallRef { id, name }: CallRef| {
        let mut id = if id.is_empty() { name.as_str().into() } else { id };
        counter.number(&name, &mut id);
        CallRef { id, name }
    };
    named(content, ["functionCall", "function_call"]).into_iter().map(numbered).collect()
}

/// Returns the responses of a content.
pub(crate) fn responses(content: &JsonElement<'_>) -> Vec<CallRef> {
    named(content, ["functionResponse", "function_response"])
}

fn named(content: &JsonElement<'_>, keys: [&str; 2]) -> Vec<CallRef> {
    let object = content.object.as_ref();
    let parts = object.and_then(|o| o.array("parts").or_else(|| o.array("content")));
    let one = |part: &RawValue| {
        let part = Object::of(part)?;
        let object = keys.iter().find_map(|key| part.object(key))?;
        let id = block::call_id(&object, &["id"]);
        Some(CallRef { id, name: object.owned("name").unwrap_or_default() })
    };
    parts.unwrap_or_default().into_iter().filter_map(one).collect()
}

/// A conversation in the form of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestParts {
    /// `systemInstruction`, if any.
    pub system: Option<RawJson>,
    /// The contents; user and model alternate.
    pub contents: Vec<RawJson>,
}

/// Writes a conversation. Adjacent messages of one role are merged. A response names its function,
/// which is looked up by the call's id. Thinking is dropped.
#[must_use]
pub fn write<'m>(messages: impl IntoIterator<Item = &'m Message>) -> RequestParts {
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
        let json = ObjectWriter::new().text("role", role).raw("parts", array(parts)).end();
        RawJson::from_text(json)
    };
    let contents = turns.into_iter().filter(|(_, parts)| !parts.is_empty()).map(content).collect();
    let system = (!system.is_empty())
        .then(|| RawJson::from_text(ObjectWriter::new().raw("parts", array(system)).end()));
    RequestParts { system, contents }
}

fn text_json(text: &str) -> String {
    ObjectWriter::new().text("text", text).end()
}

/// Writes a block as a part; `names` maps call ids to function names.
pub(crate) fn part(block: &Block, names: &HashMap<CallId, String>) -> Option<String> {
    match block {
        Block::Thinking { .. } => None,
        Block::ToolCall(call) => {
            let id = Some(&*call.id).filter(|id| !is_derived(id, &call.name));
            let inner = ObjectWriter::new()
                .text_if("id", id)
                .text("name", &call.name)
                .raw("args", arguments_object(&call.arguments));
            Some(ObjectWriter::new().raw("functionCall", inner.end()).end())
        }
        Block::ToolResult(result) => {
            let name =
                result.name.as_deref().or_else(|| Some(names.get(&result.call_id)?.as_str()));
            let name = name.unwrap_or(&result.call_id);
            let id = Some(&*result.call_id).filter(|id| !is_derived(id, name));
            let inner = ObjectWriter::new()
                .text_if("id", id)
                .text("name", name)
                .raw("response", response(result));
            Some(ObjectWriter::new().raw("functionResponse", inner.end()).end())
        }
        Block::Image(image) => Some(image_json(image)),
        Block::Text { text } if text.is_empty() => None,
        block => Some(text_json(&block_text(block))),
    }
}

/// Wraps a function response in a field that says whether it failed.
pub(crate) fn response(result: &ToolResult) -> String {
    let key = if result.is_error { "error" } else { "output" };
    ObjectWriter::new().text(key, &texts(&result.content)).end()
}

fn image_json(image: &Image) -> String {
    if image.is_url {
        let file = ObjectWriter::new()
            .text("mimeType", &image.mime_type)
            .text("fileUri", &image.data)
            .end();
        return ObjectWriter::new().raw("fileData", file).end();
    }
    let data =
        ObjectWriter::new().text("mimeType", &image.mime_type).text("data", &image.data).end();
    ObjectWriter::new().raw("inlineData", data).end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_responses_are_matched_by_name() {
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
    fn calls_of_one_function_without_ids_are_distinguished_and_sent_without_ids() {
        let wire = [
            r#"{"role":"model","parts":[{"functionCall":{"name":"read","args":{"p":1}}},{"functionCall":{"name":"read","args":{"p":2}}}]}"#,
            r#"{"role":"user","parts":[{"functionResponse":{"name":"read","response":{"output":"one"}}},{"functionResponse":{"name":"read","response":{"output":"two"}}}]}"#,
        ];
        let messages: Vec<_> = wire.iter().map(|json| parse(json).unwrap()).collect();
        let calls: Vec<_> = messages[0].tool_calls().map(|call| call.id.to_string()).collect();
        let results: Vec<_> = messages[1].tool_results().map(|r| r.call_id.to_string()).collect();
        assert_eq!((calls.clone(), results), (vec!["read".to_owned(), "read#2".to_owned()], calls));
        let written = write(&messages);
        assert_eq!(written.contents.iter().map(RawJson::as_str).collect::<Vec<_>>(), wire);
    }

    #[test]
    fn both_spellings_are_read() {
        let call = r#"{"role":"model","parts":[{"function_call":{"name":"now","args":{}}}]}"#;
        assert_eq!(parse(call).unwrap().tool_calls().count(), 1);
        let result = r#"{"role":"user","parts":[{"function_response":{"name":"now","response":{"output":"x"}}}]}"#;
        assert_eq!(parse(result).unwrap().role, Role::ToolResult);
    }

    #[test]
    fn a_call_without_an_id_is_matched_by_its_name() {
        let json = r#"{"role":"model","parts":[{"functionCall":{"name":"now","args":{}}}]}"#;
        assert_eq!(&*parse(json).unwrap().tool_calls().next().unwrap().id, "now");
    }
}

//! Anthropic Messages: `{"role", "content": string | blocks}`.

use std::borrow::Cow;

use ctx_core::{Block, Image, Message, Meta, RawJson, Result, Role, Usage};
use serde_json::value::RawValue;

use crate::block;
use crate::json::{JsonElement, Object, ObjectWriter, arguments_object, array, text_block, value};
use crate::openai_chat::names_a_field;
use crate::shape::{as_user_text, block_text};

/// Parses a message of a request, or a whole answer (`id`, `model`, `usage`, `stop_reason`). A user
/// message that consists of tool results gets [`Role::ToolResult`].
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
    read(&JsonElement::of(raw))
}

/// Parses a message from an element of a list.
pub(crate) fn read(element: &JsonElement<'_>) -> Message {
    let Some(object) = &element.object else { return block::opaque_message(element.raw) };
    let role = object.text("role").unwrap_or_else(|| "unknown".into());
    let blocks = block::content(object.get("content"));
    let role = block::role_with(Role::from_name(&role), &blocks);
    Message { role, blocks, meta: meta(object) }
}

fn meta(object: &Object<'_>) -> Meta {
    Meta {
        model: object.owned("model"),
        response_id: object.owned("id"),
        usage: object.object("usage").map(|counts| usage(&counts, Usage::default())),
        stop_reason: object.owned("stop_reason"),
        ..Meta::default()
    }
}

/// Parses the counts of a `usage` object; missing fields keep their values from `before`. Tokens
/// read from the cache are not part of the input count.
pub(crate) fn usage(object: &Object<'_>, before: Usage) -> Usage {
    let count = |key, before| object.count(key).unwrap_or(before);
    let hour = || object.object("cache_creation")?.count("ephemeral_1h_input_tokens");
    Usage {
        input: count("input_tokens", before.input),
        output: count("output_tokens", before.output),
        cache_read: count("cache_read_input_tokens", before.cache_read),
        cache_write: count("cache_creation_input_tokens", before.cache_write),
        cache_write_hour: hour().unwrap_or(before.cache_write_hour),
        total_tokens: None,
    }
}

/// Returns the text of a request's `system` field: a string or text blocks.
#[must_use]
pub fn system_text(raw: &RawValue) -> String {
    Message::new(Role::System, block::content(Some(raw))).plain_text()
}

/// Inserted before a history that begins with an answer: the API requires a user message first.
pub(crate) const DROPPED_PLACEHOLDER: &str =
    "[ctx] earlier messages of this conversation are left out";

/// A conversation in the form of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestParts {
    /// The text of the leading system messages.
    pub system: Option<String>,
    /// The messages; user and assistant alternate.
    pub messages: Vec<RawJson>,
}

/// Writes a conversation. Adjacent messages of one role are merged; tool results come first in a
/// user message, as the API requires. Later system messages become user text. A placeholder is
/// inserted before a leading answer. Thinking without a signature of this provider is dropped,
/// because the API would refuse it.
#[must_use]
pub fn write<'m>(messages: impl IntoIterator<Item = &'m Message>) -> RequestParts {
    write_marked(messages, 0)
}

/// Like [`write()`], with cache marks on the last two user messages: the next request reads the
/// cache at the last one, and the previous request wrote it at the one before. The API itself does
/// not search far back.
#[must_use]
pub fn write_cached<'m>(messages: impl IntoIterator<Item = &'m Message>) -> RequestParts {
    write_marked(messages, 2)
}

fn write_marked<'m>(messages: impl IntoIterator<Item = &'m Message>, marks: usize) -> RequestParts {
    let (system, turns) = turns(messages);
    let users = turns.iter().enumerate().rev().filter(|(_, turn)| turn.role == "user");
    let marked: Vec<_> = users.take(marks).map(|(at, _)| at).collect();
    let turns = turns.into_iter().enumerate();
    let messages = turns.map(|(at, turn)| turn.end(marked.contains(&at))).collect();
    RequestParts { system, messages }
}

/// Writes a system prompt as a block; `marked` adds a cache mark, which caches everything up to it.
#[must_use]
pub fn system(text: &str, marked: bool) -> String {
    let block = text_block(text);
    if marked { mark(&block) } else { block }
}

/// Adds a cache mark to an object, which caches everything up to it.
pub(crate) fn mark(object: &str) -> String {
    mark_as(object, r#"{"type":"ephemeral"}"#)
}

/// Adds the given cache mark to an object.
pub(crate) fn mark_as(object: &str, mark: &str) -> String {
    let Some(open) = object.trim_end().strip_suffix('}') else { return object.to_owned() };
    let comma = if open.trim_end().ends_with('{') { "" } else { "," };
    format!("{open}{comma}\"cache_control\":{mark}}}")
}

fn turns<'m>(messages: impl IntoIterator<Item = &'m Message>) -> (Option<String>, Vec<Turn>) {
    let mut system: Vec<String> = Vec::new();
    let mut turns: Vec<Turn> = Vec::new();
    for message in messages {
        if message.role == Role::System && turns.is_empty() {
            system.push(message.plain_text());
            continue;
        }
        let Some(message) = as_user_text(message) else { continue };
        let role = if message.role == Role::Assistant { "assistant" } else { "user" };
        let blocks = message.blocks.iter().filter_map(|b| Some((is_result(b), block_json(b)?)));
        let blocks: Vec<_> = blocks.collect();
        match turns.last_mut().filter(|turn| turn.role == role) {
            Some(turn) => turn.blocks.extend(blocks),
            // An empty message must not separate its neighbours.
            None if blocks.is_empty() => {}
            None => turns.push(Turn { role, blocks }),
        }
    }
    if turns.first().is_some_and(|turn| turn.role == "assistant") {
        let blocks = text_json(DROPPED_PLACEHOLDER).map(|json| (false, json)).into_iter().collect();
        turns.insert(0, Turn { role: "user", blocks });
    }
    ((!system.is_empty()).then(|| system.join("\n\n")), turns)
}

struct Turn {
    role: &'static str,
    blocks: Vec<(bool, String)>,
}

impl Turn {
    fn end(mut self, marked: bool) -> RawJson {
        self.blocks.sort_by_key(|(is_result, _)| !is_result);
        if let Some((_, last)) = self.blocks.last_mut().filter(|_| marked) {
            *last = mark(last);
        }
        let content = array(self.blocks.iter().map(|(_, json)| json));
        let json = ObjectWriter::new().text("role", self.role).raw("content", content).end();
        RawJson::from_text(json)
    }
}

/// Whether [`write()`] keeps a block. Thinking without this provider's signature is dropped.
#[must_use]
pub fn keeps(block: &Block) -> bool {
    match block {
        Block::Thinking { signature, .. } => signature.as_deref().is_some_and(is_valid),
        _ => true,
    }
}

fn is_result(block: &Block) -> bool {
    matches!(block, Block::ToolResult(_))
}

fn text_json(text: &str) -> Option<String> {
    (!text.trim().is_empty()).then(|| text_block(text))
}

/// Writes a block; `None` if the API refuses it: empty text, thinking without a valid signature.
pub(crate) fn block_json(block: &Block) -> Option<String> {
    block_as(block, call_id)
}

/// Writes a block with unchanged ids, to match calls and results that are sent unchanged.
pub(crate) fn block_with_ids(block: &Block) -> Option<String> {
    block_as(block, |id| Cow::Borrowed(id))
}

fn block_as(block: &Block, call_id: impl Fn(&str) -> Cow<'_, str>) -> Option<String> {
    match block {
        Block::Text { text } => text_json(text),
        Block::Thinking { thinking, signature: Some(signature) } if is_valid(signature) => Some(
            ObjectWriter::new()
                .text("type", "thinking")
                .text("thinking", thinking)
                .text("signature", signature)
                .end(),
        ),
        Block::Thinking { .. } => None,
        Block::ToolCall(call) => Some(
            ObjectWriter::new()
                .text("type", "tool_use")
                .text("id", &call_id(&call.id))
                .text("name", &call.name)
                .raw("input", arguments_object(&call.arguments))
                .end(),
        ),
        Block::ToolResult(result) => {
            let content = array(result.content.iter().filter_map(inner_json));
            let fresh = ObjectWriter::new()
                .text("type", "tool_result")
                .text("tool_use_id", &call_id(&result.call_id))
                .raw("content", content);
            Some(fresh.plain_if("is_error", result.is_error.then_some(true)).end())
        }
        Block::Image(image) => Some(image_json(image)),
        Block::Bash(_) => text_json(&block_text(block)),
        Block::Opaque { json } => match Object::parse(json.as_str()) {
            Ok(object) if object.text("type").is_some() => Some(json.as_str().to_owned()),
            _ => text_json(json.as_str()),
        },
    }
}

/// Whether a signature may be this provider's. Other providers use the field for a field name, for
/// a whole item as JSON, or (OpenAI) for encrypted text with a fixed prefix. This provider's
/// signatures are any other opaque text.
fn is_valid(signature: &str) -> bool {
    let foreign = signature.starts_with('{') || signature.starts_with("gAAAA");
    !signature.is_empty() && !foreign && !names_a_field(signature)
}

/// Writes a block inside a tool result: text, image, or opaque.
pub(crate) fn inner_json(block: &Block) -> Option<String> {
    match block {
        Block::ToolResult(_) | Block::ToolCall(_) | Block::Thinking { .. } => {
            text_json(&block_text(block))
        }
        block => block_json(block),
    }
}

fn image_json(image: &Image) -> String {
    let source = if image.is_url {
        ObjectWriter::new().text("type", "url").text("url", &image.data)
    } else {
        ObjectWriter::new()
            .text("type", "base64")
            .text("media_type", &image.mime_type)
            .text("data", &image.data)
    };
    ObjectWriter::new().text("type", "image").raw("source", source.end()).end()
}

/// Replaces the characters of other providers' ids that the API refuses: it accepts only letters,
/// digits, `_` and `-`.
fn call_id(id: &str) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !id.is_empty() && id.chars().all(fits) {
        return Cow::Borrowed(id);
    }
    let mended: String = id.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    Cow::Owned(if mended.is_empty() { "call".to_owned() } else { mended })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_alone_are_not_a_user_message() {
        let json = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x","is_error":true}]}"#;
        let message = parse(json).unwrap();
        assert_eq!(message.role, Role::ToolResult);
        let result = message.tool_results().next().unwrap();
        assert!(result.is_error && &*result.call_id == "a");
        assert_eq!(result.content, [Block::text("x")]);
    }

    #[test]
    fn neighbours_merge_and_results_come_first() {
        let call = parse(r#"{"role":"assistant","content":[{"type":"thinking","thinking":"t"},{"type":"tool_use","id":"a|1","name":"n","input":{"x":1.50}}]}"#).unwrap();
        let messages = [
            Message::text(Role::System, "be kind"),
            Message::text(Role::CompactionSummary, "s"),
            call,
            Message::text(Role::User, "wait"),
            Message::tool_result("a|1", "done"),
        ];
        let written = write(&messages);
        assert_eq!(written.system.as_deref(), Some("be kind"));
        let texts: Vec<_> = written.messages.iter().map(RawJson::as_str).collect();
        assert_eq!(texts.len(), 3);
        assert_eq!(
            texts[1],
            r#"{"role":"assistant","content":[{"type":"tool_use","id":"a_1","name":"n","input":{"x":1.50}}]}"#
        );
        assert!(texts[2].find("tool_result").unwrap() < texts[2].find("wait").unwrap());
        assert!(texts[2].contains(r#""tool_use_id":"a_1""#));
    }

    #[test]
    fn the_first_message_is_the_users_and_none_is_empty() {
        let thought = Block::Thinking { thinking: "t".to_owned(), signature: None };
        let written = write(&[
            Message::text(Role::Assistant, "a"),
            Message::text(Role::User, "b"),
            Message::new(Role::Assistant, vec![thought]),
            Message::new(Role::User, vec![Block::text(" "), Block::text("c")]),
            Message::text(Role::Assistant, ""),
        ]);
        let texts: Vec<_> = written.messages.iter().map(RawJson::as_str).collect();
        let text = |text: &str| format!(r#"{{"type":"text","text":"{text}"}}"#);
        let one =
            |role: &str, content: String| format!(r#"{{"role":"{role}","content":[{content}]}}"#);
        let both = format!("{},{}", text("b"), text("c"));
        let expected = [
            one("user", text(DROPPED_PLACEHOLDER)),
            one("assistant", text("a")),
            one("user", both),
        ];
        assert_eq!(texts, expected);
        assert_eq!(write(&[Message::text(Role::Assistant, "")]), RequestParts::default());
    }

    #[test]
    fn thinking_of_other_providers_is_left_out() {
        let thinking = |signature: &str| {
            let signature = Some(signature.to_owned());
            let block = Block::Thinking { thinking: "t".to_owned(), signature };
            let message = Message::new(Role::Assistant, vec![block, Block::text("x")]);
            write(&[Message::text(Role::User, "u"), message]).messages.remove(1)
        };
        for foreign in ["", "gAAAAABo", "reasoning_content", r#"{"type":"reasoning","id":"rs_1"}"#]
        {
            assert!(!thinking(foreign).as_str().contains("thinking"), "{foreign}");
        }
        assert!(thinking("EqQBCgIYAhIM").as_str().contains(r#""signature":"EqQBCgIYAhIM""#));
    }

    #[test]
    fn unknown_blocks_go_through() {
        let json = r#"{"role":"assistant","content":[{"type":"redacted_thinking","data":"zz"}]}"#;
        let message = parse(json).unwrap();
        assert_eq!(write([&message]).messages[1].as_str(), json);
    }
}

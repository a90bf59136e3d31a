//! Anthropic messages: `{"role", "content": string | blocks}`.

use std::borrow::Cow;

use ctx_core::{Block, Image, Message, Meta, RawJson, Result, Role, Usage};
use serde_json::value::RawValue;

use crate::block;
use crate::json::{Fresh, Object, arguments_object, array, value};
use crate::openai_chat::names_a_field;
use crate::shape::{as_user_text, block_text};

/// Reads a message: one of a request, or a whole answer (`id`, `model`, `usage`, `stop_reason`).
/// A user message of nothing but tool results gets [`Role::ToolResult`].
///
/// # Errors
///
/// [`Corrupt`](ctx_core::ErrorKind::Corrupt) if the text is not JSON.
pub fn parse(json: &str) -> Result<Message> {
    value(json).map(parse_raw)
}

/// Reads a message from a value that is known to be JSON.
#[must_use]
pub fn parse_raw(raw: &RawValue) -> Message {
    let Some(object) = Object::of(raw) else { return block::no_message(raw) };
    let role = object.text("role").unwrap_or_else(|| "unknown".into());
    let blocks = block::content(object.get("content"));
    let role = block::speaker(Role::from_name(&role), &blocks);
    Message { role, blocks, meta: meta(&object) }
}

fn meta(object: &Object<'_>) -> Meta {
    Meta {
        model: object.owned("model"),
        response_id: object.owned("id"),
        usage: object.object("usage").map(|u| usage(&u)),
        stop_reason: object.owned("stop_reason"),
        ..Meta::default()
    }
}

fn usage(object: &Object<'_>) -> Usage {
    let count = |key| object.count(key).unwrap_or_default();
    let hour = || object.object("cache_creation")?.count("ephemeral_1h_input_tokens");
    Usage {
        input: count("input_tokens"),
        output: count("output_tokens"),
        cache_read: count("cache_read_input_tokens"),
        cache_write: count("cache_creation_input_tokens"),
        cache_write_hour: hour().unwrap_or_default(),
        total_tokens: None,
    }
}

/// The text of a request's `system`: a string or text blocks.
#[must_use]
pub fn system_text(raw: &RawValue) -> String {
    Message::new(Role::System, block::content(Some(raw))).plain_text()
}

/// What stands before a history that was cut at an answer: the API wants the user to begin.
pub const LEFT_OUT: &str = "[ctx] earlier messages of this conversation are left out";

/// A conversation as a request takes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The text of the system messages at the beginning.
    pub system: Option<String>,
    /// The messages, user and assistant in turn.
    pub messages: Vec<RawJson>,
}

/// Writes a conversation. Neighbours of one role become one message; in a user message tool
/// results stand first, as the API demands. System messages after the beginning become user text.
/// Before an answer at the beginning stands [`LEFT_OUT`]. Thinking without a signature of this
/// provider is left out: the API would refuse it.
#[must_use]
pub fn write<'m>(messages: impl IntoIterator<Item = &'m Message>) -> Written {
    let (system, turns) = turns(messages);
    let messages = turns.into_iter().map(|turn| turn.end(false)).collect();
    Written { system, messages }
}

/// As [`write()`], with the last two messages of the user marked for the cache: the last is where
/// the next request will read it, and the one before where the last request has written it. The API
/// does not look far back for that by itself.
#[must_use]
pub fn write_marked<'m>(messages: impl IntoIterator<Item = &'m Message>) -> Written {
    let (system, turns) = turns(messages);
    let users = turns.iter().enumerate().rev().filter(|(_, turn)| turn.role == "user");
    let marked: Vec<_> = users.take(2).map(|(at, _)| at).collect();
    let turns = turns.into_iter().enumerate();
    let messages = turns.map(|(at, turn)| turn.end(marked.contains(&at))).collect();
    Written { system, messages }
}

/// A system prompt as a block of a request; `marked`: all up to it is to be kept in the cache.
#[must_use]
pub fn system(text: &str, marked: bool) -> String {
    let block = Fresh::new().text("type", "text").text("text", text).end();
    if marked { mark(&block) } else { block }
}

/// An object with a mark that all up to it is to be kept in the cache.
pub(crate) fn mark(object: &str) -> String {
    mark_as(object, r#"{"type":"ephemeral"}"#)
}

/// An object with that mark.
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
            // A message of which nothing can be said must not keep its neighbours apart.
            None if blocks.is_empty() => {}
            None => turns.push(Turn { role, blocks }),
        }
    }
    if turns.first().is_some_and(|turn| turn.role == "assistant") {
        let blocks = text_json(LEFT_OUT).map(|json| (false, json)).into_iter().collect();
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
        let json = Fresh::new().text("role", self.role).raw("content", content).end();
        RawJson::from_text(json)
    }
}

/// Whether [`write()`] has a place for a block: not for thinking that this provider did not sign.
#[must_use]
pub fn keeps(block: &Block) -> bool {
    match block {
        Block::Thinking { signature, .. } => signature.as_deref().is_some_and(is_proof),
        _ => true,
    }
}

fn is_result(block: &Block) -> bool {
    matches!(block, Block::ToolResult(_))
}

fn text_json(text: &str) -> Option<String> {
    (!text.trim().is_empty()).then(|| Fresh::new().text("type", "text").text("text", text).end())
}

/// One block, or `None` for what the API refuses: empty text, thinking that is not proved.
pub(crate) fn block_json(block: &Block) -> Option<String> {
    block_as(block, call_id)
}

/// One block with its ids as they are: beside calls and results of a history that is told as it
/// came, they must be the same.
pub(crate) fn told_block(block: &Block) -> Option<String> {
    block_as(block, |id| Cow::Borrowed(id))
}

fn block_as(block: &Block, call_id: impl Fn(&str) -> Cow<'_, str>) -> Option<String> {
    match block {
        Block::Text { text } => text_json(text),
        Block::Thinking { thinking, signature: Some(signature) } if is_proof(signature) => Some(
            Fresh::new()
                .text("type", "thinking")
                .text("thinking", thinking)
                .text("signature", signature)
                .end(),
        ),
        Block::Thinking { .. } => None,
        Block::ToolCall(call) => Some(
            Fresh::new()
                .text("type", "tool_use")
                .text("id", &call_id(&call.id))
                .text("name", &call.name)
                .raw("input", arguments_object(&call.arguments))
                .end(),
        ),
        Block::ToolResult(result) => {
            let content = array(result.content.iter().filter_map(inner_json));
            let fresh = Fresh::new()
                .text("type", "tool_result")
                .text("tool_use_id", &call_id(&result.call_id))
                .raw("content", content);
            Some(if result.is_error { fresh.plain("is_error", true) } else { fresh }.end())
        }
        Block::Image(image) => Some(image_json(image)),
        Block::Bash(_) => text_json(&block_text(block)),
        Block::Opaque { json } => match Object::parse(json.as_str()) {
            Ok(object) if object.text("type").is_some() => Some(json.as_str().to_owned()),
            _ => text_json(json.as_str()),
        },
    }
}

/// Whether a signature can be this provider's. Of those that others leave in its place, some name
/// a field, some are a whole item as JSON, and OpenAI's begin as all its encrypted texts do; this
/// one's are other opaque text.
fn is_proof(signature: &str) -> bool {
    let foreign = signature.starts_with('{') || signature.starts_with("gAAAA");
    !signature.is_empty() && !foreign && !names_a_field(signature)
}

/// A block inside a tool result: text, image, or carried.
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
        Fresh::new().text("type", "url").text("url", &image.data)
    } else {
        Fresh::new()
            .text("type", "base64")
            .text("media_type", &image.mime_type)
            .text("data", &image.data)
    };
    Fresh::new().text("type", "image").raw("source", source.end()).end()
}

/// The API takes ids of letters, digits, `_` and `-` only; other providers' ids hold more.
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
    fn results_alone_are_no_user_message() {
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
    fn the_user_begins_and_nothing_is_empty() {
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
        let expected =
            [one("user", text(LEFT_OUT)), one("assistant", text("a")), one("user", both)];
        assert_eq!(texts, expected);
        assert_eq!(write(&[Message::text(Role::Assistant, "")]), Written::default());
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

//! Requests of the Responses API, for servers that offer OpenAI's chat completions only.
//!
//! ```text
//! Responses body -> `ChatRequest` -> chat body
//! chat answer -> `ChatAnswer` -> answer of the Responses API
//! ```

mod answer;
mod tools;

use ctx_core::{Block, Message, RawJson, Role, ToolCall};
use serde_json::json;

use super::{Items, Protocol, referenced_item};
use crate::json::{Object, ObjectWriter, array, quote};
use crate::{openai_chat, openai_responses};

pub use answer::ChatAnswer;
use tools::ChatTools;

/// A request of the Responses API as one for chat completions.
#[derive(Debug)]
pub struct ChatRequest {
    /// The chat body.
    pub body: String,
    /// Converts the answer.
    pub answer: ChatAnswer,
}

impl ChatRequest {
    /// Converts a body; `id` is that of its answer. Returns `None` if its history is stored at the
    /// provider. Reasoning, and the provider's own tools with their calls, have no equivalent and are
    /// left out.
    #[must_use]
    pub fn of(body: &str, id: &str, created_at: i64) -> Option<Self> {
        let object = Object::parse(body).ok()?;
        if ["previous_response_id", "conversation"].iter().any(|key| object.get(key).is_some()) {
            return None;
        }
        let tools = ChatTools::of(&object);
        let streams = object.is_true("stream");
        let chat = fields(&object, &tools, streams).raw(
            "messages",
            array(openai_chat::write(&messages(body, &object)?).iter().map(RawJson::as_str)),
        );
        let model = object.owned("model").unwrap_or_default();
        let answer = ChatAnswer::new(tools, model, (id, created_at), streams);
        Some(Self { body: chat.end(), answer })
    }
}

/// Returns the fields that both APIs have.
fn fields(object: &Object<'_>, tools: &ChatTools, streams: bool) -> ObjectWriter {
    let mut chat = ObjectWriter::new();
    for (key, of) in [
        ("model", "model"),
        ("temperature", "temperature"),
        ("top_p", "top_p"),
        ("stream", "stream"),
        ("max_tokens", "max_output_tokens"),
    ] {
        chat = chat.raw_if(key, object.get(of).map(|raw| raw.get()));
    }
    if streams {
        chat = chat.raw("stream_options", r#"{"include_usage":true}"#);
    }
    let effort = object.object("reasoning").and_then(|reasoning| reasoning.owned("effort"));
    chat = chat.text_if("reasoning_effort", effort.as_deref());
    if let Some(tools) = tools.json() {
        let parallel = object.get("parallel_tool_calls").map(|raw| raw.get());
        chat = chat.raw("tools", tools).raw_if("parallel_tool_calls", parallel);
        chat = chat.raw_if("tool_choice", tool_choice(object));
    }
    chat.raw_if("response_format", response_format(object))
}

fn tool_choice(object: &Object<'_>) -> Option<String> {
    if let Some(choice) = object.text("tool_choice") {
        return Some(quote(&choice));
    }
    let name = object.object("tool_choice")?.owned("name")?;
    Some(json!({ "type": "function", "function": { "name": name } }).to_string())
}

fn response_format(object: &Object<'_>) -> Option<String> {
    let format = object.object("text")?.object("format")?;
    let kind = format.owned("type").filter(|kind| kind != "text")?;
    let fresh = ObjectWriter::new().text("type", &kind);
    if kind != "json_schema" {
        return Some(fresh.end());
    }
    let schema = ["name", "description", "schema", "strict"]
        .into_iter()
        .fold(ObjectWriter::new(), |schema, key| {
            schema.raw_if(key, format.get(key).map(|raw| raw.get()))
        });
    Some(fresh.raw("json_schema", schema.end()).end())
}

/// Returns the history, with the items of one answer as one message.
fn messages(body: &str, object: &Object<'_>) -> Option<Vec<Message>> {
    let mut messages: Vec<Message> = Vec::new();
    messages.extend(object.owned("instructions").map(|text| Message::text(Role::System, text)));
    let Some(items) = Items::of(Protocol::Responses, body) else {
        let text = object.owned(Protocol::Responses.history())?;
        messages.push(Message::text(Role::User, text));
        return Some(messages);
    };
    for item in items.iter() {
        if referenced_item(item).is_some() {
            return None;
        }
        let mut message = message(item)?;
        message
            .blocks
            .retain(|block| !matches!(block, Block::Thinking { .. } | Block::Opaque { .. }));
        match messages.last_mut() {
            _ if message.blocks.is_empty() => {}
            // Some servers refuse calls apart from their answer, and several system messages.
            Some(last)
                if last.role == message.role
                    && matches!(message.role, Role::Assistant | Role::System) =>
            {
                last.blocks.append(&mut message.blocks);
            }
            _ => messages.push(message),
        }
    }
    Some(messages)
}

/// Reads an item. A call has the name and the arguments that its tool has in chat.
fn message(item: &str) -> Option<Message> {
    let mut message = openai_responses::parse(item).ok()?;
    let object = Object::parse(item).ok()?;
    for block in &mut message.blocks {
        if let Block::ToolCall(call) = block {
            let name = tools::chat_name(object.text("namespace").as_deref(), &call.name);
            let arguments = match object.text("type").as_deref() {
                Some("custom_tool_call") => {
                    let input = object.owned("input").unwrap_or_default();
                    RawJson::from_text(json!({ "input": input }).to_string())
                }
                _ => call.arguments.clone(),
            };
            *block = Block::ToolCall(ToolCall::new(call.id.clone(), name, arguments));
        }
    }
    Some(message)
}

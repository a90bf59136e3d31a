//! The Agent Trajectory Interchange Format (ATIF, versions 1.0 to 1.8): one JSON document, read by
//! translation to a pi session.
//!
//! A step of the agent is an answer with its calls; the results of these are in its observation.

use std::borrow::Cow;
use std::path::Path;

use ctx_core::{Block, Message, Result, Role, Usage};
use ctx_dialect::json::{Object, ObjectWriter, array, elements, quote, string, text_block, value};
use ctx_dialect::{openai_chat, tools};
use serde_json::value::RawValue;

use super::{Conversation, Format, FormatSpec, Omissions, PiLines, Target, pi};
use crate::schema::{SYSTEM_PROMPT_TYPE, TOOLS_TYPE};

/// The version that is written.
const VERSION: &str = "ATIF-v1.8";

impl Format {
    /// The Agent Trajectory Interchange Format.
    pub const ATIF: Self = Self(&FormatSpec {
        name: "atif",
        begins: |first| first.text("schema_version").is_some_and(|v| v.starts_with("ATIF-")),
        read: Some(|source| pi::read_translated(source, to_pi)),
        target: Some(Target::Document { write, summaries: false }),
        keeps: |role, block| match block {
            Block::Image(_) => *role != Role::Assistant,
            block => !matches!(block, Block::Opaque { .. }),
        },
        ..FormatSpec::NONE
    });
}

/// Converts a trajectory to lines of a pi session.
fn to_pi(text: &str, _: Option<&Path>) -> Result<Vec<u8>> {
    let document = Object::parse(text.trim())?;
    let agent = document.object("agent").unwrap_or_default();
    let id = document.text("session_id").or_else(|| document.text("trajectory_id"));
    let mut lines = PiLines::in_memory(&id.unwrap_or_default(), None, None)?;
    if let Some(tools) = agent.get("tool_definitions").filter(|raw| elements(raw).is_some()) {
        lines.custom(TOOLS_TYPE, tools.get())?;
    }
    let (mut has_system, model) = (false, agent.text("model_name"));
    for (n, raw) in document.array("steps").unwrap_or_default().into_iter().enumerate() {
        let step = Object::of(raw).unwrap_or_default();
        let id = step.id("step_id").map_or_else(|| (n + 1).to_string(), |id| id.into_owned());
        let time = step.get("timestamp").map_or("null", RawValue::get);
        let content = step.get("message");
        match step.text("source").as_deref() {
            Some("agent") => {
                let model = step.text("model_name").or_else(|| model.clone());
                lines.messages(&id, time, [answer(&step, model.as_deref())])?;
            }
            Some("system") if !has_system => {
                has_system = true;
                let text = content.and_then(string).unwrap_or_default();
                lines.custom(SYSTEM_PROMPT_TYPE, &quote(&text))?;
            }
            Some("system") => lines.messages(&id, time, [message("system", content)])?,
            _ => lines.messages(&id, time, [message("user", content)])?,
        }
        lines.messages(&format!("{id}.result"), time, results(&step))?;
    }
    Ok(lines.out)
}

fn message(role: &str, content: Option<&RawValue>) -> String {
    let content = content.map_or_else(|| "[]".to_owned(), blocks);
    ObjectWriter::new().text("role", role).raw("content", content).end()
}

/// Returns text or parts as blocks of pi.
fn blocks(content: &RawValue) -> String {
    match (string(content), elements(content)) {
        (Some(text), _) if text.is_empty() => array::<&str>([]),
        (Some(text), _) => array([text_block(&text)]),
        (None, Some(parts)) => array(parts.into_iter().map(part)),
        (None, None) => array::<&str>([]),
    }
}

/// Converts a part. Images are stored beside the trajectory, and keep their path.
fn part(raw: &RawValue) -> String {
    let part = Object::of(raw).unwrap_or_default();
    let source = part.object("source").unwrap_or_default();
    match (part.text("type").as_deref(), source.text("path")) {
        (Some("image"), Some(path)) => {
            ObjectWriter::new().text("type", "image").text("url", &path).end()
        }
        _ => raw.get().to_owned(),
    }
}

fn answer(step: &Object<'_>, model: Option<&str>) -> String {
    let thinking = step.text("reasoning_content").filter(|text| !text.is_empty());
    let thinking = thinking
        .map(|text| ObjectWriter::new().text("type", "thinking").text("thinking", &text).end());
    let text = step.get("message").map(blocks);
    let text = text.as_deref().and_then(|list| value(list).ok()).and_then(elements);
    let text = text.unwrap_or_default().into_iter().map(|raw| raw.get().to_owned());
    let calls = step.array("tool_calls").unwrap_or_default();
    let calls = calls.into_iter().filter_map(Object::of).map(|call| {
        ObjectWriter::new()
            .text("type", "toolCall")
            .text("id", &id_of(&call))
            .text("name", &call.text("function_name").unwrap_or_default())
            .raw("arguments", call.get("arguments").map_or("{}", RawValue::get))
            .end()
    });
    let usage = step.object("metrics").map(|metrics| usage(&metrics)).unwrap_or_default();
    ObjectWriter::new()
        .text("role", "assistant")
        .raw("content", array(thinking.into_iter().chain(text).chain(calls)))
        .text_if("model", model)
        .raw("usage", serde_json::to_string(&usage).unwrap_or_default())
        .end()
}

/// Parses usage. Cached tokens are a part of the prompt's.
fn usage(metrics: &Object<'_>) -> Usage {
    let count = |key| metrics.count(key).unwrap_or_default();
    let cached = count("cached_tokens");
    Usage {
        input: count("prompt_tokens").saturating_sub(cached),
        output: count("completion_tokens"),
        cache_read: cached,
        ..Usage::default()
    }
}

fn id_of<'a>(call: &Object<'a>) -> Cow<'a, str> {
    call.text("tool_call_id").unwrap_or_default()
}

/// Returns the results of a step's calls. A result that names no call belongs to the only one; with
/// several, or none, it becomes a user message.
fn results(step: &Object<'_>) -> Vec<String> {
    let calls = step.array("tool_calls").unwrap_or_default();
    let calls: Vec<Object<'_>> = calls.into_iter().filter_map(Object::of).collect();
    let observation = step.object("observation").unwrap_or_default();
    let observed = observation.array("results").unwrap_or_default();
    let results = observed.into_iter().filter_map(Object::of).map(|result| {
        let content = result.get("content");
        let named = result.text("source_call_id");
        let call = match (&named, calls.as_slice()) {
            (Some(id), all) => all.iter().find(|call| id_of(call) == *id),
            (None, [only]) => Some(only),
            (None, _) => None,
        };
        let Some(call) = call else { return message("user", content) };
        let is_error = result.object("extra").is_some_and(|extra| extra.is_true("is_error"));
        ObjectWriter::new()
            .text("role", "toolResult")
            .text("toolCallId", &id_of(call))
            .text("toolName", &call.text("function_name").unwrap_or_default())
            .raw("content", content.map_or_else(|| "[]".to_owned(), blocks))
            .plain("isError", is_error)
            .end()
    });
    results.collect()
}

/// A step while its results are collected.
struct Step {
    fields: ObjectWriter,
    calls: Vec<String>,
    results: Vec<String>,
}

impl Step {
    fn of(message: &Message, number: usize) -> Self {
        let source = match message.role {
            Role::Assistant => "agent",
            Role::System => "system",
            _ => "user",
        };
        let mut fields = ObjectWriter::new().plain("step_id", number).text("source", source);
        let time = message.meta.timestamp;
        let time = time.and_then(|at| jiff::Timestamp::from_millisecond(at.0).ok());
        fields = fields.text_if("timestamp", time.map(|at| at.to_string()).as_deref());
        let is_answer = message.role == Role::Assistant;
        let text = || quote(&message.plain_text());
        fields = fields.raw("message", if is_answer { text() } else { sent(message) });
        let mut step = Self { fields, calls: Vec::new(), results: Vec::new() };
        if is_answer {
            step.answer(message);
        }
        step
    }

    fn answer(&mut self, message: &Message) {
        let thinking: Vec<_> = message
            .blocks
            .iter()
            .filter_map(|block| match block {
                Block::Thinking { thinking, .. } if !thinking.is_empty() => Some(thinking.as_str()),
                _ => None,
            })
            .collect();
        let thinking = (!thinking.is_empty()).then(|| thinking.join("\n"));
        let calls = message.tool_calls().map(|call| {
            let arguments = call.arguments.as_str();
            let is_object = Object::parse(arguments).is_ok();
            let wrapped = || ObjectWriter::new().raw("input", arguments).end();
            ObjectWriter::new()
                .text("tool_call_id", &call.id)
                .text("function_name", &call.name)
                .raw("arguments", if is_object { arguments.to_owned() } else { wrapped() })
                .end()
        });
        let calls: Vec<_> = calls.collect();
        self.calls = message.tool_calls().map(|call| call.id.to_string()).collect();
        let fields = std::mem::take(&mut self.fields)
            .text_if("model_name", message.meta.model.as_deref())
            .text_if("reasoning_content", thinking.as_deref())
            .raw_if("tool_calls", (!calls.is_empty()).then(|| array(calls)));
        self.fields = fields.raw_if(
            "metrics",
            message.meta.usage.map(|usage| {
                ObjectWriter::new()
                    .plain("prompt_tokens", usage.prompt())
                    .plain("completion_tokens", usage.output)
                    .plain("cached_tokens", usage.cache_read)
                    .end()
            }),
        );
    }

    fn end(self) -> String {
        let results = (!self.results.is_empty())
            .then(|| ObjectWriter::new().raw("results", array(self.results)).end());
        self.fields.raw_if("observation", results).end()
    }
}

/// Returns the content of a message as a model sees it, without results: summaries and commands are
/// wrapped.
fn sent(message: &Message) -> String {
    let without_results = |block: &&Block| !matches!(block, Block::ToolResult(_));
    let has_images = message.blocks.iter().any(|block| matches!(block, Block::Image(_)));
    if has_images {
        let blocks: Vec<_> = message.blocks.iter().filter(without_results).cloned().collect();
        return content(&blocks);
    }
    let mut texts = Vec::new();
    for json in openai_chat::write([message]) {
        let object = Object::parse(json.as_str()).unwrap_or_default();
        let is_result = object.text("role").as_deref() == Some("tool");
        let Some(content) = object.get("content").filter(|_| !is_result) else { continue };
        let parts = elements(content).into_iter().flatten();
        texts.extend(string(content).map(Cow::into_owned));
        texts.extend(parts.filter_map(|raw| Object::of(raw)?.owned("text")));
    }
    quote(&texts.join("\n"))
}

/// Returns blocks as text, or as parts if there are images. An image keeps its address, or has its data
/// as one.
fn content(blocks: &[Block]) -> String {
    const MEDIA_TYPES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];
    let message = Message::new(Role::User, blocks.to_vec());
    if !blocks.iter().any(|block| matches!(block, Block::Image(_))) {
        return quote(&message.plain_text());
    }
    let parts = blocks.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text_block(text)),
        Block::Image(image) => {
            let given = MEDIA_TYPES.into_iter().find(|kind| *kind == image.mime_type);
            let media_type = given.unwrap_or("image/png");
            let source = ObjectWriter::new()
                .text("media_type", media_type)
                .text("path", &openai_chat::image_url(image));
            Some(ObjectWriter::new().text("type", "image").raw("source", source.end()).end())
        }
        _ => None,
    });
    array(parts)
}

fn write(conversation: &Conversation, omissions: &mut Omissions) -> Result<(String, usize)> {
    let (messages, count) = conversation.request(Format::ATIF, omissions)?;
    let tools = conversation.written_tools(tools::to_openai, omissions);
    let mut steps: Vec<Step> = Vec::new();
    for message in &messages {
        for result in message.tool_results() {
            let caller = steps
                .iter_mut()
                .rev()
                .find(|step| step.calls.contains(&result.call_id.to_string()));
            let error = result.is_error.then(|| ObjectWriter::new().plain("is_error", true).end());
            let written = ObjectWriter::new()
                .text_if("source_call_id", caller.is_some().then_some(&*result.call_id))
                .raw("content", content(&result.content))
                .raw_if("extra", error)
                .end();
            let step = match caller {
                Some(step) => step,
                None => {
                    steps.push(Step::of(&Message::text(Role::System, ""), steps.len() + 1));
                    let Some(last) = steps.last_mut() else { continue };
                    last
                }
            };
            step.results.push(written);
        }
        if message.role != Role::ToolResult {
            steps.push(Step::of(message, steps.len() + 1));
        }
    }
    let model = messages.iter().rev().find_map(|message| message.meta.model.as_deref());
    let agent = ObjectWriter::new()
        .text("name", "unknown")
        .text("version", "unknown")
        .text_if("model_name", model)
        .raw_if("tool_definitions", tools);
    let document = ObjectWriter::new()
        .text("schema_version", VERSION)
        .raw("agent", agent.end())
        .raw("steps", array(steps.into_iter().map(Step::end)))
        .text("notes", "Converted by ctx. The name of the agent is not in its transcript.");
    Ok((document.end(), count))
}

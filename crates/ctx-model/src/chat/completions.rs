//! OpenAI Chat Completions.

use ctx_core::{RawJson, Usage};
use ctx_dialect::json::{ObjectWriter, array};
use ctx_dialect::{openai_chat, tools};
use serde_json::{Value, json};

use super::Stop;
use super::answer_reader::{AnswerReader, is_error};
use super::quirks::Quirks;
use super::request::ModelRequest;
use crate::overflow::as_number;

/// Key of the text and reasoning parts, which have no index in this API; calls have one.
const ANSWER_KEY: u64 = 0;

/// The field names of the reasoning. The first non-empty one is used, since some servers send it
/// twice.
const REASONING: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_text"];

pub(super) fn body(request: &ModelRequest<'_>) -> String {
    let messages = request.with_system();
    let messages = openai_chat::write(request.clean(&messages).iter().map(AsRef::as_ref));
    let fresh = ObjectWriter::new().text("model", request.model).plain("stream", true);
    // OpenAI's newer models refuse `max_tokens`; most other servers accept only that.
    let new = request.is_openai != request.quirks.has(Quirks::OTHER_LIMIT_FIELD);
    let limit = if new { "max_completion_tokens" } else { "max_tokens" };
    let options = ObjectWriter::new().plain("include_usage", true).end();
    let takes_options = !request.quirks.has(Quirks::NO_STREAM_OPTIONS);
    fresh
        .plain_if(limit, request.max_tokens)
        .raw_if("stream_options", takes_options.then_some(options))
        .text_if("reasoning_effort", request.effort())
        .text_if("prompt_cache_key", request.cache_key().as_deref())
        .raw_if("tools", request.tools(tools::for_openai_chat))
        .raw("messages", array(messages.iter().map(RawJson::as_str)))
        .end()
}

/// Reads one chunk of a stream.
pub(super) fn event(reader: &mut AnswerReader<'_>, chunk: &Value) {
    if is_error(chunk) {
        reader.failed = Some(chunk.clone());
        return;
    }
    reader.take_id(&chunk["id"]);
    choice(reader, &chunk["choices"][0], "delta");
    reader.take_usage(&chunk["usage"], usage);
}

/// Reads an answer that was not streamed.
pub(super) fn whole(reader: &mut AnswerReader<'_>, answer: &Value) {
    if !answer["choices"][0].is_object() {
        return;
    }
    event(reader, answer);
    choice(reader, &answer["choices"][0], "message");
    reader.done = true;
}

fn choice(reader: &mut AnswerReader<'_>, choice: &Value, part: &str) {
    let message = &choice[part];
    let filled = |field: &&str| message[*field].as_str().is_some_and(|text| !text.is_empty());
    if let Some(field) = REASONING.iter().find(|field| filled(field)) {
        reader.push_thinking(ANSWER_KEY, &message[*field]);
        // Servers that send reasoning expect it back under the same field name.
        reader.parts.sign(ANSWER_KEY, field);
    }
    match &message["content"] {
        Value::Array(parts) => parts.iter().for_each(|part| content(reader, part)),
        text => reader.push_text(ANSWER_KEY, text),
    }
    reader.push_text(ANSWER_KEY, &message["refusal"]);
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        call_piece(reader, call);
    }
    if let Some(reason) = choice["finish_reason"].as_str() {
        reader.stop = Some(match reason {
            "length" | "max_tokens" => Stop::Length,
            "model_context_window_exceeded" => Stop::Window,
            "content_filter" | "sensitive" => Stop::Filtered,
            "error" | "network_error" => {
                // The provider failed; some report it only as the finish reason.
                reader.failed = Some(json!({ "error": { "message": reason, "code": 502 } }));
                return;
            }
            _ => Stop::End,
        });
    }
}

/// Reads one part of an answer's content: Mistral's thinking models answer in parts.
fn content(reader: &mut AnswerReader<'_>, part: &Value) {
    reader.push_text(ANSWER_KEY, &part["text"]);
    for thought in part["thinking"].as_array().into_iter().flatten() {
        reader.push_thinking(ANSWER_KEY, &thought["text"]);
    }
}

/// Reads a call or a fragment of one. Fragments name their call by `index`. Some servers omit it or
/// give all calls the same index: a new id then starts a new call. Others give all calls the same
/// id: a new index then starts a new call.
fn call_piece(reader: &mut AnswerReader<'_>, piece: &Value) {
    let function = &piece["function"];
    let id = piece["id"].as_str().unwrap_or_default();
    let name = function["name"].as_str().unwrap_or_default();
    let indexed = piece["index"].as_u64();
    let last = reader.parts.last_call();
    let begins = !name.is_empty()
        && indexed.is_some_and(|index| last.is_some() && reader.parts.call_id(index).is_none());
    let of_last =
        last.filter(|last| !begins && !id.is_empty() && reader.parts.call_id(*last) == Some(id));
    let mut key = of_last.or(indexed).or(last).unwrap_or_default();
    let is_new = of_last.is_none()
        && match reader.parts.call_id(key) {
            None => true,
            Some(_) if id.is_empty() => indexed.is_none() && !name.is_empty(),
            Some(known) => known != id && !name.is_empty(),
        };
    if is_new {
        if reader.parts.call_id(key).is_some() {
            key = last.unwrap_or_default().max(key).saturating_add(1);
        }
        reader.parts.begin_call(key, id, name);
    }
    match &function["arguments"] {
        Value::String(more) => reader.parts.push_arguments(key, more),
        Value::Null => {}
        // Some servers send the object itself.
        whole => reader.parts.set_arguments(key, &whole.to_string()),
    }
}

fn usage(usage: &Value) -> Usage {
    let count = |value: &Value| as_number(value).unwrap_or_default();
    let details = &usage["prompt_tokens_details"];
    let cached = count(&details["cached_tokens"]).max(count(&usage["prompt_cache_hit_tokens"]));
    let written = count(&details["cache_write_tokens"]);
    Usage {
        input: count(&usage["prompt_tokens"]).saturating_sub(cached).saturating_sub(written),
        output: count(&usage["completion_tokens"]),
        cache_read: cached,
        cache_write: written,
        total_tokens: as_number(&usage["total_tokens"]),
        ..Usage::default()
    }
}

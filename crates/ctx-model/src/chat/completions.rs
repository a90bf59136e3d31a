//! OpenAI chat completions.

use ctx_core::{RawJson, Usage};
use ctx_dialect::json::{Fresh, array};
use ctx_dialect::{openai_chat, tools};
use serde_json::{Value, json};

use super::Stop;
use super::asking::Asking;
use super::quirks::Quirks;
use super::reading::{Reading, is_error};
use crate::overflow::as_number;

/// Text and reasoning have no number here, and calls have theirs.
const SAID: u64 = 0;

/// Where the reasoning stands, by the names it goes by. The first that is filled counts: some send
/// it twice.
const REASONING: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_text"];

pub(super) fn body(asking: &Asking<'_>) -> String {
    let messages = asking.with_system();
    let messages = openai_chat::write(asking.clean(&messages).iter().map(AsRef::as_ref));
    let fresh = Fresh::new().text("model", asking.model).plain("stream", true);
    // OpenAI's newer models refuse `max_tokens`; most others know nothing else.
    let new = asking.is_openai != asking.quirks.has(Quirks::OTHER_LIMIT_FIELD);
    let limit = if new { "max_completion_tokens" } else { "max_tokens" };
    let fresh = fresh.plain_if(limit, asking.max_tokens);
    let fresh = match asking.quirks.has(Quirks::NO_STREAM_OPTIONS) {
        true => fresh,
        false => fresh.raw("stream_options", Fresh::new().plain("include_usage", true).end()),
    };
    let think_little = asking.reasoning && !asking.is_conversation;
    let fresh = match think_little && !asking.quirks.has(Quirks::NO_EFFORT) {
        true => fresh.text("reasoning_effort", "low"),
        false => fresh,
    };
    let fresh = fresh.text_if("prompt_cache_key", asking.cache_key().as_deref());
    let fresh = match asking.tools {
        [] => fresh,
        specs => fresh.raw("tools", tools::for_openai_chat(specs)),
    };
    fresh.raw("messages", array(messages.iter().map(RawJson::as_str))).end()
}

/// One chunk of a stream.
pub(super) fn event(reading: &mut Reading<'_>, chunk: &Value) {
    if is_error(chunk) {
        reading.failed = Some(chunk.clone());
        return;
    }
    reading.take_id(&chunk["id"]);
    choice(reading, &chunk["choices"][0], "delta");
    reading.take_usage(&chunk["usage"], usage);
}

/// An answer that was not streamed.
pub(super) fn whole(reading: &mut Reading<'_>, answer: &Value) {
    if !answer["choices"][0].is_object() {
        return;
    }
    event(reading, answer);
    choice(reading, &answer["choices"][0], "message");
    reading.done = true;
}

fn choice(reading: &mut Reading<'_>, choice: &Value, part: &str) {
    let said = &choice[part];
    let filled = |field: &&str| said[*field].as_str().is_some_and(|text| !text.is_empty());
    if let Some(field) = REASONING.iter().find(|field| filled(field)) {
        reading.push_thinking(SAID, &said[*field]);
        // Those who send it want it back under that name.
        reading.parts.sign(SAID, field);
    }
    match &said["content"] {
        Value::Array(parts) => parts.iter().for_each(|part| content(reading, part)),
        text => reading.push_text(SAID, text),
    }
    reading.push_text(SAID, &said["refusal"]);
    for call in said["tool_calls"].as_array().into_iter().flatten() {
        call_piece(reading, call);
    }
    if let Some(reason) = choice["finish_reason"].as_str() {
        reading.stop = Some(match reason {
            "length" | "max_tokens" => Stop::Length,
            "model_context_window_exceeded" => Stop::Window,
            "content_filter" | "sensitive" => Stop::Filtered,
            "error" | "network_error" => {
                // The answer failed on the provider's side, which some say by the reason alone.
                reading.failed = Some(json!({ "error": { "message": reason, "code": 502 } }));
                return;
            }
            _ => Stop::End,
        });
    }
}

/// Mistral's thinking models answer in parts.
fn content(reading: &mut Reading<'_>, part: &Value) {
    reading.push_text(SAID, &part["text"]);
    for thought in part["thinking"].as_array().into_iter().flatten() {
        reading.push_thinking(SAID, &thought["text"]);
    }
}

/// A call, or a piece of one. Pieces name their call by `index`; some servers leave it out, and
/// some give all calls the same: then an id of its own tells a new call. And some give all calls the
/// same id: then an index of its own does.
fn call_piece(reading: &mut Reading<'_>, piece: &Value) {
    let function = &piece["function"];
    let id = piece["id"].as_str().unwrap_or_default();
    let name = function["name"].as_str().unwrap_or_default();
    let indexed = piece["index"].as_u64();
    let last = reading.parts.last_call();
    let begins = !name.is_empty()
        && indexed.is_some_and(|index| last.is_some() && reading.parts.call_id(index).is_none());
    let of_last =
        last.filter(|last| !begins && !id.is_empty() && reading.parts.call_id(*last) == Some(id));
    let mut key = of_last.or(indexed).or(last).unwrap_or_default();
    let is_new = of_last.is_none()
        && match reading.parts.call_id(key) {
            None => true,
            Some(_) if id.is_empty() => indexed.is_none() && !name.is_empty(),
            Some(known) => known != id && !name.is_empty(),
        };
    if is_new {
        if reading.parts.call_id(key).is_some() {
            key = last.unwrap_or_default().max(key).saturating_add(1);
        }
        reading.parts.begin_call(key, id, name);
    }
    match &function["arguments"] {
        Value::String(more) => reading.parts.push_arguments(key, more),
        Value::Null => {}
        // Some give the object itself.
        whole => reading.parts.set_arguments(key, &whole.to_string()),
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
        cache_write_hour: 0,
        total_tokens: as_number(&usage["total_tokens"]),
    }
}

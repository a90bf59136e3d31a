//! OpenAI responses.

use ctx_core::{RawJson, Usage};
use ctx_dialect::json::{Fresh, array, quote};
use ctx_dialect::{openai_responses, tools};
use serde_json::Value;

use super::Stop;
use super::asking::Asking;
use super::quirks::Quirks;
use super::reading::{Reading, is_error};
use crate::overflow::as_number;

pub(super) fn body(asking: &Asking<'_>) -> String {
    let clean = asking.clean(asking.messages);
    let input = openai_responses::write(clean.iter().map(AsRef::as_ref));
    let fresh = Fresh::new()
        .text("model", asking.model)
        .plain("stream", true)
        // What is asked is kept here, not at the provider.
        .plain("store", false)
        .plain_if("max_output_tokens", asking.max_tokens)
        .text_if("instructions", asking.system)
        .text_if("prompt_cache_key", asking.cache_key().as_deref());
    let fresh = match asking.tools {
        [] => fresh,
        specs => fresh.raw("tools", tools::for_openai_responses(specs)),
    };
    let fresh = thinking(asking, fresh);
    fresh.raw("input", array(input.iter().map(RawJson::as_str))).end()
}

/// How a model that thinks is to do so: little for a summary; in a conversation such that its
/// thoughts can be read, and given back to it.
fn thinking(asking: &Asking<'_>, fresh: Fresh) -> Fresh {
    let without = |bit| asking.quirks.has(bit);
    if !asking.reasoning {
        return fresh;
    }
    let effort = Fresh::new().text("effort", "low");
    match asking.is_conversation {
        false if without(Quirks::NO_EFFORT) => fresh,
        false => fresh.raw("reasoning", effort.end()),
        true => {
            let fresh = match without(Quirks::NO_THOUGHT_SUMMARY) {
                true => fresh,
                false => fresh.raw("reasoning", Fresh::new().text("summary", "auto").end()),
            };
            match without(Quirks::NO_ENCRYPTED) {
                true => fresh,
                false => fresh.raw("include", array([quote("reasoning.encrypted_content")])),
            }
        }
    }
}

/// One event of a stream.
pub(super) fn event(reading: &mut Reading<'_>, event: &Value) {
    let key = event["output_index"].as_u64().unwrap_or_default();
    match event["type"].as_str().unwrap_or_default() {
        "response.created" => reading.take_id(&event["response"]["id"]),
        "response.output_item.added" if event["item"]["type"] == "function_call" => {
            begin_call(reading, key, &event["item"]);
        }
        "response.output_text.delta" | "response.refusal.delta" => {
            reading.push_text(key, &event["delta"]);
        }
        "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
            reading.push_thinking(key, &event["delta"]);
        }
        "response.reasoning_summary_part.added" => reading.parts.part_thinking(key),
        "response.function_call_arguments.delta" => {
            reading.parts.push_arguments(key, event["delta"].as_str().unwrap_or_default());
        }
        "response.function_call_arguments.done" => {
            reading.parts.set_arguments(key, event["arguments"].as_str().unwrap_or_default());
        }
        "response.output_item.done" => item_done(reading, key, &event["item"]),
        "response.completed" | "response.incomplete" | "response.done" => {
            end(reading, &event["response"]);
        }
        "response.failed" => reading.failed = Some(event["response"].clone()),
        _ if is_error(event) => reading.failed = Some(event.clone()),
        _ => {}
    }
}

/// An answer that was not streamed.
pub(super) fn whole(reading: &mut Reading<'_>, answer: &Value) {
    if answer["status"] == "failed" {
        reading.failed = Some(answer.clone());
    } else if answer["output"].is_array() {
        end(reading, answer);
    }
}

fn begin_call(reading: &mut Reading<'_>, key: u64, item: &Value) {
    let text = |key: &str| item[key].as_str().unwrap_or_default();
    reading.parts.begin_call(key, text("call_id"), text("name"));
    reading.parts.push_arguments(key, text("arguments"));
}

/// An item as it is in the end, of which some or all may have come in pieces.
fn item_done(reading: &mut Reading<'_>, key: u64, item: &Value) {
    match item["type"].as_str().unwrap_or_default() {
        "function_call" => {
            if reading.parts.call_id(key).is_none() {
                begin_call(reading, key, item);
            }
            reading.parts.set_arguments(key, item["arguments"].as_str().unwrap_or_default());
        }
        "reasoning" => {
            if !reading.parts.has_thinking(key) {
                for part in ["summary", "content"].iter().filter_map(|list| item[list].as_array()) {
                    for part in part {
                        reading.parts.part_thinking(key);
                        reading.push_thinking(key, &part["text"]);
                    }
                }
            }
            // Without its encrypted form the provider takes no reasoning back.
            if item["encrypted_content"].as_str().is_some_and(|sealed| !sealed.is_empty()) {
                reading.parts.sign(key, &item.to_string());
            }
        }
        _ => {}
    }
}

fn end(reading: &mut Reading<'_>, response: &Value) {
    reading.take_id(&response["id"]);
    if reading.parts.is_empty() {
        let items = response["output"].as_array().into_iter().flatten();
        for (key, item) in (0..).zip(items) {
            item_done(reading, key, item);
            for part in item["content"].as_array().into_iter().flatten() {
                if part["type"] == "output_text" {
                    reading.push_text(key, &part["text"]);
                }
                reading.push_text(key, &part["refusal"]);
            }
        }
    }
    reading.take_usage(&response["usage"], usage);
    let reason = response["incomplete_details"]["reason"].as_str();
    reading.stop = Some(match reason {
        Some("max_output_tokens" | "max_tokens") => Stop::Length,
        Some("content_filter") => Stop::Filtered,
        Some(_) => Stop::Length,
        None if response["status"] == "incomplete" => Stop::Length,
        None => Stop::End,
    });
    reading.done = true;
}

fn usage(usage: &Value) -> Usage {
    let count = |value: &Value| as_number(value).unwrap_or_default();
    let cached = count(&usage["input_tokens_details"]["cached_tokens"]);
    Usage {
        input: count(&usage["input_tokens"]).saturating_sub(cached),
        output: count(&usage["output_tokens"]),
        cache_read: cached,
        cache_write: 0,
        cache_write_hour: 0,
        total_tokens: as_number(&usage["total_tokens"]),
    }
}

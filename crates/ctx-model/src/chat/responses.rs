//! OpenAI Responses.

use ctx_core::{RawJson, Usage};
use ctx_dialect::json::{ObjectWriter, array, quote};
use ctx_dialect::{openai_responses, tools};
use serde_json::Value;

use super::Stop;
use super::answer_reader::{AnswerReader, is_error};
use super::quirks::Quirks;
use super::request::ModelRequest;
use crate::overflow::as_number;

pub(super) fn body(request: &ModelRequest<'_>) -> String {
    let clean = request.clean(request.messages);
    let input = openai_responses::write(clean.iter().map(AsRef::as_ref));
    let fresh = ObjectWriter::new()
        .text("model", request.model)
        .plain("stream", true)
        // The conversation is stored here, not at the provider.
        .plain("store", false)
        .plain_if("max_output_tokens", request.max_tokens)
        .text_if("instructions", request.system)
        .text_if("prompt_cache_key", request.cache_key().as_deref())
        .raw_if("tools", request.tools(tools::for_openai_responses));
    let fresh = thinking(request, fresh);
    fresh.raw("input", array(input.iter().map(RawJson::as_str))).end()
}

/// Adds the thinking settings: a low level for a summary; in a conversation, readable reasoning
/// that can be sent back.
fn thinking(request: &ModelRequest<'_>, fresh: ObjectWriter) -> ObjectWriter {
    let shows =
        |without| request.reasoning && request.is_conversation && !request.quirks.has(without);
    let summary = shows(Quirks::NO_THOUGHT_SUMMARY).then_some("auto");
    let how = ObjectWriter::new().text_if("effort", request.effort()).text_if("summary", summary);
    let include = array([quote("reasoning.encrypted_content")]);
    fresh
        .raw_if("reasoning", request.effort().or(summary).map(|_| how.end()))
        .raw_if("include", shows(Quirks::NO_ENCRYPTED).then_some(include))
}

/// Reads one event of a stream.
pub(super) fn event(reader: &mut AnswerReader<'_>, event: &Value) {
    let key = event["output_index"].as_u64().unwrap_or_default();
    match event["type"].as_str().unwrap_or_default() {
        "response.created" => reader.take_id(&event["response"]["id"]),
        "response.output_item.added" if event["item"]["type"] == "function_call" => {
            begin_call(reader, key, &event["item"]);
        }
        "response.output_text.delta" | "response.refusal.delta" => {
            reader.push_text(key, &event["delta"]);
        }
        "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
            reader.push_thinking(key, &event["delta"]);
        }
        "response.reasoning_summary_part.added" => reader.parts.part_thinking(key),
        "response.function_call_arguments.delta" => {
            reader.parts.push_arguments(key, event["delta"].as_str().unwrap_or_default());
        }
        "response.function_call_arguments.done" => {
            reader.parts.set_arguments(key, event["arguments"].as_str().unwrap_or_default());
        }
        "response.output_item.done" => item_done(reader, key, &event["item"]),
        "response.completed" | "response.incomplete" | "response.done" => {
            end(reader, &event["response"]);
        }
        "response.failed" => reader.failed = Some(event["response"].clone()),
        _ if is_error(event) => reader.failed = Some(event.clone()),
        _ => {}
    }
}

/// Reads an answer that was not streamed.
pub(super) fn whole(reader: &mut AnswerReader<'_>, answer: &Value) {
    if answer["status"] == "failed" {
        reader.failed = Some(answer.clone());
    } else if answer["output"].is_array() {
        end(reader, answer);
    }
}

fn begin_call(reader: &mut AnswerReader<'_>, key: u64, item: &Value) {
    let text = |key: &str| item[key].as_str().unwrap_or_default();
    reader.parts.begin_call(key, text("call_id"), text("name"));
    reader.parts.push_arguments(key, text("arguments"));
}

/// Reads a complete item. Some or all of its fragments may have been read before.
fn item_done(reader: &mut AnswerReader<'_>, key: u64, item: &Value) {
    match item["type"].as_str().unwrap_or_default() {
        "function_call" => {
            if reader.parts.call_id(key).is_none() {
                begin_call(reader, key, item);
            }
            reader.parts.set_arguments(key, item["arguments"].as_str().unwrap_or_default());
        }
        "reasoning" => {
            if !reader.parts.has_thinking(key) {
                for part in ["summary", "content"].iter().filter_map(|list| item[list].as_array()) {
                    for part in part {
                        reader.parts.part_thinking(key);
                        reader.push_thinking(key, &part["text"]);
                    }
                }
            }
            // The provider accepts reasoning back only in encrypted form.
            if item["encrypted_content"].as_str().is_some_and(|sealed| !sealed.is_empty()) {
                reader.parts.sign(key, &item.to_string());
            }
        }
        _ => {}
    }
}

fn end(reader: &mut AnswerReader<'_>, response: &Value) {
    reader.take_id(&response["id"]);
    if reader.parts.is_empty() {
        let items = response["output"].as_array().into_iter().flatten();
        for (key, item) in (0..).zip(items) {
            item_done(reader, key, item);
            for part in item["content"].as_array().into_iter().flatten() {
                if part["type"] == "output_text" {
                    reader.push_text(key, &part["text"]);
                }
                reader.push_text(key, &part["refusal"]);
            }
        }
    }
    reader.take_usage(&response["usage"], usage);
    let reason = response["incomplete_details"]["reason"].as_str();
    reader.stop = Some(match reason {
        Some("content_filter") => Stop::Filtered,
        Some(_) => Stop::Length,
        None if response["status"] == "incomplete" => Stop::Length,
        None => Stop::End,
    });
    reader.done = true;
}

fn usage(usage: &Value) -> Usage {
    let count = |value: &Value| as_number(value).unwrap_or_default();
    let cached = count(&usage["input_tokens_details"]["cached_tokens"]);
    Usage {
        input: count(&usage["input_tokens"]).saturating_sub(cached),
        output: count(&usage["output_tokens"]),
        cache_read: cached,
        total_tokens: as_number(&usage["total_tokens"]),
        ..Usage::default()
    }
}

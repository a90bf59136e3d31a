//! Tools that ctx adds to a request and answers itself.

use ctx_core::text::Slice;
use ctx_core::{ToolCall, ToolSpec};
use serde_json::value::RawValue;

use super::unit::span;
use super::{Protocol, Request};
use crate::json::{Object, ObjectWriter, array, elements, quote};
use crate::tools;

/// Whether tools can be added to a request: it has some, does not force or forbid a call, asks for
/// no JSON, and has no tool with a grammar or with one of these names.
#[must_use]
pub fn takes_tools(request: &Request<'_>, names: &[&str]) -> bool {
    let (protocol, object) = (request.protocol, &request.fields);
    let is_taken = |tool: &&RawValue| {
        let (tool, text) = (Object::of(tool), tool.get());
        tool.is_some_and(|tool| tool.text("type").is_some_and(|kind| kind == "custom"))
            || names.iter().any(|name| text.contains(&quote(name)))
    };
    let tools = tools_of(protocol, object).and_then(elements);
    tools.is_some_and(|tools| !tools.is_empty() && !tools.iter().any(is_taken))
        && !is_fixed(protocol, object)
}

/// Returns the body with more tools at the end of its tools; `None` if it has none. Requests of
/// Bedrock Converse get none.
#[must_use]
pub fn with_tools(protocol: Protocol, body: &str, specs: &[ToolSpec]) -> Option<String> {
    let new = match protocol {
        Protocol::Chat => tools::for_openai_chat(specs),
        Protocol::Responses => tools::for_openai_responses(specs),
        Protocol::Messages => tools::for_anthropic(specs, false),
        Protocol::Gemini => tools::for_gemini(specs),
        Protocol::Converse => return None,
    };
    let (object, _) = Object::parse_prefix(body);
    extended(body, tools_of(protocol, &object)?, new.slice(1..new.len() - 1))
}

/// Returns the list of tools. For Gemini, these are the declarations of the first tool that has
/// any, because Vertex refuses several such tools.
fn tools_of<'a>(protocol: Protocol, body: &Object<'a>) -> Option<&'a RawValue> {
    let tools = body.get("tools")?;
    match protocol {
        Protocol::Gemini => elements(tools)?.into_iter().find_map(|tool| {
            Object::of(tool)?.first(&["functionDeclarations", "function_declarations"])
        }),
        _ => Some(tools),
    }
}

/// Whether a request fixes how the model answers.
fn is_fixed<'a>(protocol: Protocol, body: &Object<'a>) -> bool {
    let is_other = |object: Option<Object<'_>>, key: &str, usual: &[&str]| {
        object.and_then(|object| object.owned(key)).is_some_and(|kind| !usual.contains(&&*kind))
    };
    let choice = body.get("tool_choice").filter(|raw| !matches!(raw.get(), "null" | "\"auto\""));
    let is_forced = choice.is_some_and(|raw| {
        Object::of(raw).and_then(|choice| choice.owned("type")).is_none_or(|kind| kind != "auto")
    });
    is_forced
        || body.is_true("background")
        || body.count("n").is_some_and(|n| n > 1)
        || match protocol {
            Protocol::Chat => is_other(body.object("response_format"), "type", &["text"]),
            Protocol::Responses => {
                let format = body.object("text").and_then(|text| text.object("format"));
                is_other(format, "type", &["text"])
            }
            Protocol::Messages | Protocol::Converse => {
                let config = body.object("output_config");
                body.has("output_format") || config.is_some_and(|config| config.has("format"))
            }
            Protocol::Gemini => {
                let inner = |of: &Object<'a>, keys: &[&str]| {
                    of.first(keys).and_then(Object::of).unwrap_or_default()
                };
                let is_other = |of: &Object<'a>, keys: &[&str], usual: &str| {
                    of.first(keys).is_some_and(|raw| ![usual, "null"].contains(&raw.get()))
                };
                let config = inner(body, &["generationConfig", "generation_config"]);
                let tools = inner(body, &["toolConfig", "tool_config"]);
                let calling = inner(&tools, &["functionCallingConfig", "function_calling_config"]);
                let kind = &["responseMimeType", "response_mime_type"];
                is_other(&calling, &["mode"], "\"AUTO\"")
                    || is_other(&config, &["candidateCount", "candidate_count"], "1")
                    || is_other(&config, kind, "\"text/plain\"")
            }
        }
}

/// Returns the body with elements at the end of its history; `None` if it has none.
#[must_use]
pub fn with_elements(protocol: Protocol, body: &str, more: &str) -> Option<String> {
    let (object, _) = Object::parse_prefix(body);
    extended(body, object.get(protocol.history())?, more)
}

/// Returns a text with more elements at the end of a list in it, which is not empty.
fn extended(text: &str, list: &RawValue, more: &str) -> Option<String> {
    elements(list).filter(|all| !all.is_empty())?;
    let (before, after) = text.split_at_checked(span(text, list).1.checked_sub(1)?)?;
    Some([before, ",", more, after].concat())
}

/// Returns the results of calls as elements of a history.
#[must_use]
pub fn results(protocol: Protocol, answers: &[(ToolCall, String)]) -> String {
    let one = |(call, text): &(ToolCall, String)| match protocol {
        Protocol::Chat => ObjectWriter::new()
            .text("role", "tool")
            .text("tool_call_id", &call.id)
            .text("content", text)
            .end(),
        Protocol::Responses => ObjectWriter::new()
            .text("type", "function_call_output")
            .text("call_id", &call.id)
            .text("output", text)
            .end(),
        Protocol::Messages | Protocol::Converse => ObjectWriter::new()
            .text("type", "tool_result")
            .text("tool_use_id", &call.id)
            .text("content", text)
            .end(),
        Protocol::Gemini => {
            let response = ObjectWriter::new().text("output", text).end();
            let result = ObjectWriter::new()
                .text_if("id", Some(&*call.id).filter(|id| !id.is_empty()))
                .text("name", &call.name)
                .raw("response", response);
            ObjectWriter::new().raw("functionResponse", result.end()).end()
        }
    };
    let all = array(answers.iter().map(one));
    let message = ObjectWriter::new().text("role", "user");
    match protocol {
        Protocol::Chat | Protocol::Responses => all.slice(1..all.len() - 1).to_owned(),
        Protocol::Messages | Protocol::Converse => message.raw("content", all).end(),
        Protocol::Gemini => message.raw("parts", all).end(),
    }
}

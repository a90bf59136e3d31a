//! Gemini.

use serde_json::Value;

use super::seals::{Seals, Validity};
use super::{Fault, StrictRequest, Verdict, list, text};

/// Signatures documented by the API for calls that it did not generate.
const SKIPPED: [&str; 2] =
    ["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"];

/// The fields of which each part has one.
const PARTS: &str = "text inlineData inline_data fileData file_data functionCall function_call \
    functionResponse function_response executableCode codeExecutionResult";

/// The kind of a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    User,
    Model,
    Calls(usize),
    Responses(usize),
}

pub(super) fn check(request: StrictRequest<'_>, seals: &Seals) -> Verdict {
    let contents = list(&request.body["contents"]);
    if contents.is_empty() {
        return Err(wrong("contents", "contents is not specified"));
    }
    let mut before = None;
    for (n, content) in contents.iter().enumerate() {
        let kind = kind(n, content)?;
        follows(before, kind)?;
        before = Some(kind);
    }
    if let Some(Kind::Calls(_)) = before {
        refuse!(
            "Please ensure that multiturn requests ends with a user role or a function response."
        );
    }
    signatures(request, contents, seals)
}

fn wrong(field: &str, what: &str) -> Fault {
    Fault::new(format!("* GenerateContentRequest.{field}: {what}\n"))
}

fn kind(n: usize, content: &Value) -> Result<Kind, Fault> {
    let role = content["role"].as_str().unwrap_or("user");
    if !["user", "model", "function"].contains(&role) {
        refuse!("Please use a valid role: user, model.");
    }
    let parts = list(&content["parts"]);
    if parts.is_empty() {
        let field = format!("contents[{n}].parts");
        return Err(wrong(&field, "contents.parts must not be empty."));
    }
    let (mut calls, mut responses) = (0, 0);
    for (k, part) in parts.iter().enumerate() {
        let at = format!("contents[{n}].parts[{k}]");
        if !PARTS.split(' ').any(|key| part.get(key).is_some()) {
            let what = "required oneof field 'data' must have one initialized field";
            return Err(wrong(&format!("{at}.data"), what));
        }
        if let Some(call) = call_of(part) {
            calls += 1;
            named(call, &format!("{at}.function_call.name"))?;
        }
        if let Some(response) = response_of(part) {
            responses += 1;
            named(response, &format!("{at}.function_response.name"))?;
            if !response["response"].is_object() {
                let at = format!("{at}.function_response.response");
                return Err(wrong(&at, "response must be a struct"));
            }
        }
    }
    Ok(match (role, calls, responses) {
        ("model", 0, _) => Kind::Model,
        ("model", calls, _) => Kind::Calls(calls),
        (_, _, 0) => Kind::User,
        (_, _, responses) => Kind::Responses(responses),
    })
}

/// The API accepts both spellings.
fn call_of(part: &Value) -> Option<&Value> {
    part.get("functionCall").or_else(|| part.get("function_call"))
}

fn response_of(part: &Value) -> Option<&Value> {
    part.get("functionResponse").or_else(|| part.get("function_response"))
}

fn named(call: &Value, at: &str) -> Verdict {
    match text(call, "name") {
        "" => Err(wrong(at, "Name cannot be empty.")),
        _ => Ok(()),
    }
}

fn follows(before: Option<Kind>, kind: Kind) -> Verdict {
    let refuse = |message: &str| Err(Fault::new(message));
    match (before, kind) {
        (Some(Kind::Calls(calls)), Kind::Responses(responses)) if calls == responses => Ok(()),
        (Some(Kind::Calls(_)), Kind::Responses(_)) => refuse(
            "Please ensure that the number of function response parts is equal to the number of \
             function call parts of the function call turn.",
        ),
        (Some(Kind::Calls(_)), _) | (_, Kind::Responses(_)) => refuse(
            "Please ensure that function response turn comes immediately after a function call turn.",
        ),
        (None | Some(Kind::Model), Kind::Calls(_)) => refuse(
            "Please ensure that function call turn comes immediately after a user turn or after a \
             function response turn.",
        ),
        _ => Ok(()),
    }
}

/// A signature belongs to the part that it came with. The newest models require it on the first
/// call of each step of the current turn.
fn signatures(request: StrictRequest<'_>, contents: &[Value], seals: &Seals) -> Verdict {
    let is_words = |content: &Value| {
        content["role"] != "model"
            && list(&content["parts"]).iter().all(|part| response_of(part).is_none())
    };
    let turn = contents.iter().rposition(is_words).unwrap_or(0);
    let wants = request.model.contains("gemini-3");
    for (n, content) in contents.iter().enumerate() {
        let mut first = true;
        for part in list(&content["parts"]) {
            let signature = text(part, "thoughtSignature");
            let call = call_of(part);
            let words = call.map_or("", |call| text(call, "name"));
            let is_own = SKIPPED.contains(&signature)
                || matches!(
                    seals.validity(signature, words),
                    Validity::Proves(_) | Validity::Trusted
                );
            if !signature.is_empty() && !is_own {
                refuse!("Corrupted thought signature.");
            }
            if let Some(call) = call.filter(|_| std::mem::take(&mut first))
                && signature.is_empty()
                && wants
                && n > turn
            {
                refuse!(
                    "Function call is missing a thought_signature in functionCall parts. This is \
                     required for tools to work correctly, and missing thought_signature may lead to \
                     degraded model performance. Additional data, function call `{}` , position {n}.",
                    text(call, "name")
                );
            }
        }
    }
    Ok(())
}

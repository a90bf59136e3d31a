//! The requests that real providers refuse, and those they accept.

use ctx_testkit::provider::strict::{House, Seals, refusal};
use ctx_testkit::provider::{Answer, Api, Call, FakeProvider, Step};
use serde_json::{Value, json};

use crate::client::{Answer as Answered, exchange, post, request};

/// A valid conversation with a call and its result, for that API.
fn sound(api: Api) -> Value {
    match api {
        Api::Chat => json!({ "messages": [
            { "role": "user", "content": "read" },
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "c1", "type": "function", "function": { "name": "f", "arguments": "{}" } }] },
            { "role": "tool", "tool_call_id": "c1", "content": "found" },
        ]}),
        Api::Responses => json!({ "store": false, "input": [
            { "role": "user", "content": [{ "type": "input_text", "text": "read" }] },
            { "type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}" },
            { "type": "function_call_output", "call_id": "c1", "output": "found" },
        ]}),
        Api::Messages => json!({ "max_tokens": 5, "tools": [{ "name": "f" }], "messages": [
            { "role": "user", "content": "read" },
            { "role": "assistant", "content": [
                { "type": "tool_use", "id": "c1", "name": "f", "input": {} }] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "c1", "content": "found" }] },
        ]}),
        _ => json!({ "contents": [
            { "role": "user", "parts": [{ "text": "read" }] },
            { "role": "model", "parts": [{ "functionCall": { "name": "f", "args": {} } }] },
            { "role": "user", "parts": [
                { "functionResponse": { "name": "f", "response": { "output": "found" } } }] },
        ]}),
    }
}

fn history(api: Api) -> &'static str {
    match api {
        Api::Responses => "/input",
        Api::Gemini => "/contents",
        _ => "/messages",
    }
}

/// Returns why that API refuses the valid conversation after a change.
fn changed(api: Api, change: impl Fn(&mut Vec<Value>)) -> String {
    let mut body = sound(api);
    let list = body.pointer_mut(history(api)).and_then(Value::as_array_mut).unwrap();
    change(list);
    refusal(api, &body, &House::of(api), &Seals::default()).unwrap_or_else(|| "taken".to_owned())
}

#[test]
fn a_valid_conversation_is_accepted() {
    for api in [Api::Chat, Api::Responses, Api::Messages, Api::Gemini] {
        assert_eq!(changed(api, |_| {}), "taken", "{api:?}");
    }
}

#[test]
fn unpaired_calls_and_results_are_refused() {
    for (api, no_call, no_result) in [
        (
            Api::Chat,
            "messages with role 'tool' must be a response to a preceeding message",
            "did not have response messages: c1",
        ),
        (
            Api::Responses,
            "No tool call found for function call output with call_id c1.",
            "No tool output found for function call c1.",
        ),
        (
            Api::Messages,
            "unexpected `tool_use_id` found in `tool_result` blocks: c1.",
            "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: c1.",
        ),
        (
            Api::Gemini,
            "function response turn comes immediately after a function call turn",
            "multiturn requests ends with a user role or a function response",
        ),
    ] {
        let why = changed(api, |all| drop(all.remove(1)));
        assert!(why.contains(no_call), "{api:?} {why}");
        let why = changed(api, |all| drop(all.remove(2)));
        assert!(why.contains(no_result), "{api:?} {why}");
        // A message between the two, or the two in reverse order.
        let why = changed(api, |all| all.swap(1, 2));
        assert!(why.contains(no_call), "{api:?} {why}");
    }
    let why = changed(Api::Messages, |all| {
        let words = json!({ "type": "text", "text": "first" });
        all[2]["content"].as_array_mut().unwrap().insert(0, words);
    });
    assert!(why.contains("without `tool_result` blocks immediately after"), "{why}");
    let why = changed(Api::Gemini, |all| {
        let call = json!({ "functionCall": { "name": "g", "args": {} } });
        all[1]["parts"].as_array_mut().unwrap().push(call);
    });
    assert!(why.contains("number of function response parts is equal"), "{why}");
}

#[test]
fn ids_names_and_arguments_are_checked() {
    let long = "x".repeat(65);
    for (api, field, value, expected) in [
        (
            Api::Chat,
            "/1/tool_calls/0/id",
            long.as_str(),
            "string too long. Expected a string with maximum length 40, but got a string with length 65",
        ),
        (
            Api::Chat,
            "/1/tool_calls/0/function/name",
            "a b",
            "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
        ),
        (
            Api::Chat,
            "/1/tool_calls/0/function/arguments",
            "{",
            "messages[1].tool_calls[0].function.arguments",
        ),
        (Api::Responses, "/1/call_id", &long, "'input[1].call_id': string too long"),
        (Api::Responses, "/1/arguments", "no", "input[1].arguments"),
        (
            Api::Messages,
            "/1/content/0/id",
            "a b",
            "messages.1.content.0.tool_use.id: String should match pattern",
        ),
        (
            Api::Messages,
            "/1/content/0/input",
            "x",
            "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
        ),
        (
            Api::Gemini,
            "/1/parts/0/functionCall/name",
            "",
            "contents[1].parts[0].function_call.name: Name cannot be empty.",
        ),
    ] {
        let why = changed(api, |all| {
            let mut list = Value::Array(std::mem::take(all));
            *list.pointer_mut(field).unwrap() = json!(value);
            *all = list.as_array().unwrap().clone();
        });
        assert!(why.contains(expected), "{api:?} {why}");
    }
    let twice = |all: &mut Vec<Value>| all.extend_from_within(1..);
    assert_eq!(changed(Api::Messages, twice), "messages: `tool_use` ids must be unique");
    assert!(changed(Api::Responses, twice).contains("input[3].call_id"));
}

#[test]
fn unknown_roles_and_empty_messages_are_refused() {
    let role = |api, role: &'static str| changed(api, |all| all[0]["role"] = json!(role));
    assert!(
        role(Api::Chat, "bot").contains("Invalid value: 'bot'. Supported values are: 'system'")
    );
    assert!(role(Api::Responses, "bot").contains("Invalid value: 'bot'"));
    assert_eq!(
        role(Api::Messages, "bot"),
        "messages.0.role: Input should be 'user' or 'assistant'"
    );
    assert!(role(Api::Messages, "system").contains("Unexpected role \"system\""));
    assert_eq!(
        role(Api::Messages, "assistant"),
        "messages: first message must use the \"user\" role"
    );
    assert_eq!(role(Api::Gemini, "bot"), "Please use a valid role: user, model.");

    let content = |api, content: Value| changed(api, |all| all[0]["content"] = content.clone());
    assert!(content(Api::Chat, Value::Null).contains("expected a string, got null"));
    assert!(content(Api::Chat, json!([])).contains("'messages[0].content': empty array"));
    assert!(content(Api::Responses, json!([])).contains("'input[0].content': empty array"));
    assert!(content(Api::Messages, json!("")).contains("must have non-empty content"));
    let blank = json!([{ "type": "text", "text": " \n" }]);
    assert!(content(Api::Messages, blank).contains("must contain non-whitespace text"));
    let why = changed(Api::Gemini, |all| all[0]["parts"] = json!([]));
    assert!(why.contains("contents[0].parts: contents.parts must not be empty."), "{why}");
    for api in [Api::Chat, Api::Responses, Api::Messages, Api::Gemini] {
        assert_ne!(changed(api, Vec::clear), "taken", "{api:?}");
    }
}

#[test]
fn more_than_four_cache_marks_and_prefill_are_refused() {
    let marked = json!({ "type": "text", "text": "a", "cache_control": { "type": "ephemeral" } });
    let marks =
        |n: usize| changed(Api::Messages, |all| all[0]["content"] = json!(vec![marked.clone(); n]));
    assert_eq!(marks(4), "taken");
    assert!(
        marks(5).contains("A maximum of 4 blocks with cache_control may be provided. Found 5.")
    );
    let why = changed(Api::Messages, |all| {
        all.push(json!({ "role": "assistant", "content": "So" }));
    });
    assert!(why.contains("does not support assistant message prefill"), "{why}");
}

#[test]
fn built_in_tools_with_their_own_items_are_paired() {
    for (call, output) in [
        ("apply_patch_call", "apply_patch_call_output"),
        ("computer_call", "computer_call_output"),
        ("tool_search_call", "tool_search_output"),
    ] {
        let call = json!({ "type": call, "call_id": "x" });
        let output = json!({ "type": output, "call_id": "x", "output": "o", "tools": [] });
        let with = |items: &[&Value]| {
            changed(Api::Responses, |all| all.extend(items.iter().map(|item| (*item).clone())))
        };
        assert_eq!(with(&[&call, &output]), "taken");
        assert!(with(&[&call]).starts_with("No tool output found for"), "{call}");
        assert!(with(&[&output]).starts_with("No tool call found for"), "{output}");
    }
    // A call that ran on the provider's side has no id.
    let own = json!({ "type": "tool_search_output", "call_id": null, "tools": [] });
    assert_eq!(changed(Api::Responses, |all| all.push(own.clone())), "taken");
}

#[test]
fn both_spellings_of_gemini_are_accepted() {
    let snake = |all: &mut Vec<Value>| {
        let text = Value::Array(std::mem::take(all)).to_string();
        let text = text.replace("functionCall", "function_call");
        let text = text.replace("functionResponse", "function_response");
        *all = serde_json::from_str(&text).unwrap();
    };
    assert_eq!(changed(Api::Gemini, snake), "taken");
    let torn = |all: &mut Vec<Value>| {
        snake(all);
        all.remove(1);
    };
    assert!(changed(Api::Gemini, torn).contains("immediately after a function call turn"));
}

#[test]
fn providers_with_one_api_differ() {
    let two = json!({ "messages": [
        { "role": "user", "content": "a" }, { "role": "user", "content": "b" }] });
    let seals = Seals::default();
    assert_eq!(refusal(Api::Chat, &two, &House::of(Api::Chat), &seals), None);
    assert!(refusal(Api::Chat, &two, &House::mistral(), &seals).is_some());
}

fn thinks(text: &str) -> Step {
    let calls = vec![Call { name: "f".into(), arguments: json!({ "x": 1 }) }];
    Step::answer(Answer { thinking: text.into(), calls, ..Answer::default() })
}

fn strict() -> FakeProvider {
    let script = [thinks("one"), thinks("two")];
    FakeProvider::builder().strict(true).script(script).start().unwrap()
}

fn error(answer: &Answered) -> String {
    assert_eq!(answer.status, 400, "{}", answer.text());
    answer.json()["error"]["message"].as_str().unwrap().to_owned()
}

#[test]
fn anthropic_thinking_must_be_returned_unchanged() {
    let provider = strict();
    let path = "/v1/messages";
    let mut body = json!({
        "max_tokens": 5, "tools": [{ "name": "f" }],
        "thinking": { "type": "enabled", "budget_tokens": 1024 },
        "messages": [{ "role": "user", "content": "go" }],
    });
    let mut answers = Vec::new();
    for _ in 0..2 {
        let content = post(&provider, path, &body).json()["content"].clone();
        let id = content[1]["id"].clone();
        answers.push(content.clone());
        let messages = body["messages"].as_array_mut().unwrap();
        messages.push(json!({ "role": "assistant", "content": content }));
        messages.push(json!({ "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": id, "content": "r" }] }));
    }
    assert_eq!(post(&provider, path, &body).status, 200);
    let with = |at: &str, value: Value| {
        let mut body = body.clone();
        *body.pointer_mut(at).unwrap() = value;
        error(&post(&provider, path, &body))
    };
    let stale = "messages.3.content.0: Invalid `signature` in `thinking` block";
    assert_eq!(with("/messages/3/content/0/thinking", json!("other words")), stale);
    assert_eq!(with("/messages/3/content/0/signature", json!("EqQBother")), stale);
    // The thinking of the first answer is moved to the second.
    let moved = with("/messages/3/content/0", answers[0][0].clone());
    assert!(moved.contains("cannot be modified"), "{moved}");
    let without = with("/messages/3/content", json!([answers[1][1]]));
    assert!(without.contains("Expected `thinking` or `redacted_thinking`, but found `tool_use`"));
    let mut unsigned = answers[1].clone();
    unsigned[0].as_object_mut().unwrap().remove("signature");
    let unsigned = with("/messages/3/content", unsigned);
    assert_eq!(unsigned, "messages.3.content.0.thinking.signature: Field required");
    let refused = provider.requests().into_iter().filter(|request| request.refusal.is_some());
    assert_eq!(refused.count(), 5);
}

#[test]
fn beta_features_need_their_header() {
    let provider = FakeProvider::builder().strict(true).start().unwrap();
    let body = json!({ "max_tokens": 5, "messages": [
        { "role": "user", "content": "go" }, { "role": "system", "content": "s" }] });
    assert!(error(&post(&provider, "/v1/messages", &body)).contains("Unexpected role \"system\""));
    let bytes = request("POST", "/v1/messages", "anthropic-beta: x\r\n", &body.to_string());
    assert_eq!(exchange(&provider, &bytes).status, 200);
}

#[test]
fn reasoning_of_responses_stays_with_the_next_item() {
    let provider = strict();
    let path = "/v1/responses";
    let mut body = json!({
        "store": false, "include": ["reasoning.encrypted_content"],
        "input": [{ "role": "user", "content": "go" }],
    });
    let output = post(&provider, path, &body).json()["output"].clone();
    let input = body["input"].as_array_mut().unwrap();
    input.extend(output.as_array().unwrap().iter().cloned());
    input.push(
        json!({ "type": "function_call_output", "call_id": output[1]["call_id"], "output": "r" }),
    );
    let whole = body["input"].clone();
    let mut with = |change: &dyn Fn(&mut Vec<Value>)| {
        body["input"] = whole.clone();
        change(body["input"].as_array_mut().unwrap());
        let answer = post(&provider, path, &body);
        match answer.status {
            200 => "taken".to_owned(),
            _ => answer.json()["error"]["message"].as_str().unwrap().to_owned(),
        }
    };
    assert_eq!(with(&|_| {}), "taken");
    assert!(
        with(&|all| all.truncate(2)).contains(
            "'rs_1' of type 'reasoning' was provided without its required following item"
        )
    );
    assert!(with(&|all| drop(all.remove(1))).contains("'fc_1_0' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'"));
    assert!(
        with(&|all| all[1]["encrypted_content"] = json!("gAAAAAother"))
            .contains("could not be verified")
    );
    let lost = with(&|all| drop(all[1].as_object_mut().unwrap().remove("encrypted_content")));
    assert!(
        lost.contains("not found. Items are not persisted when `store` is set to false"),
        "{lost}"
    );
    // Without ids the call is valid on its own.
    let alone = |all: &mut Vec<Value>| {
        all.remove(1);
        all[1].as_object_mut().unwrap().remove("id");
    };
    assert_eq!(with(&alone), "taken");
}

#[test]
fn gemini_signatures_stay_with_their_calls() {
    let provider = strict();
    let path = "/v1beta/models/gemini-3-pro:generateContent";
    let mut body = json!({ "contents": [{ "role": "user", "parts": [{ "text": "go" }] }] });
    let content = post(&provider, path, &body).json()["candidates"][0]["content"].clone();
    let contents = body["contents"].as_array_mut().unwrap();
    contents.push(content);
    contents.push(json!({ "role": "user", "parts": [
        { "functionResponse": { "name": "f", "response": { "output": "r" } } }] }));
    assert_eq!(post(&provider, path, &body).status, 200);
    let signature = body.pointer_mut("/contents/1/parts/1").unwrap().as_object_mut().unwrap();
    signature["thoughtSignature"] = json!("other");
    assert_eq!(error(&post(&provider, path, &body)), "Corrupted thought signature.");
    let part = body.pointer_mut("/contents/1/parts/1").unwrap().as_object_mut().unwrap();
    part.remove("thoughtSignature");
    assert!(error(&post(&provider, path, &body)).contains("missing a thought_signature"));
}

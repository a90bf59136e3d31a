//! The tools with which the model reads what was cut.

use ctx_testkit::provider::{Answer, Call, FakeProvider, Request, Step};

use super::*;

const EXPAND: &str = "ctx_expand";
pub(super) const APIS: [&str; 4] = ["chat", "responses", "messages", "gemini"];

/// Returns the text of a file, the result of the call of that number.
fn file(n: usize) -> String {
    (0..60).map(|line| format!("line {line} of file {n}: \"quoted\" \u{e9}\n")).collect()
}

/// Returns a question, `files` calls with their results, and another question.
fn history(api: &str, files: usize) -> Vec<Value> {
    let say = |text: &str| match api {
        "gemini" => json!({ "role": "user", "parts": [{ "text": text }] }),
        _ => json!({ "role": "user", "content": text }),
    };
    let read = |n: usize| {
        let id = format!("call_{n}");
        let args = json!({ "path": format!("src/file{n}.rs") });
        let text = args.to_string();
        match api {
            "chat" => [
                json!({ "role": "assistant", "content": null, "tool_calls": [{ "id": id,
                    "type": "function", "function": { "name": "read", "arguments": text } }] }),
                json!({ "role": "tool", "tool_call_id": id, "content": file(n) }),
            ],
            "responses" => [
                json!({ "type": "function_call", "call_id": id, "name": "read", "arguments": text }),
                json!({ "type": "function_call_output", "call_id": id, "output": file(n) }),
            ],
            "messages" => [
                json!({ "role": "assistant", "content": [
                    { "type": "tool_use", "id": id, "name": "read", "input": args }] }),
                json!({ "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": id, "content": file(n) }] }),
            ],
            _ => [
                json!({ "role": "model", "parts": [
                    { "functionCall": { "id": id, "name": "read", "args": args } }] }),
                json!({ "role": "user", "parts": [{ "functionResponse":
                    { "id": id, "name": "read", "response": { "output": file(n) } } }] }),
            ],
        }
    };
    let mut all = vec![say("Read the files.")];
    all.extend((0..files).flat_map(read));
    all.push(say("What is in the first file?"));
    all
}

fn path(api: &str, streams: bool) -> &'static str {
    match api {
        "chat" => "/v1/chat/completions",
        "responses" => "/v1/responses",
        "messages" => "/v1/messages",
        _ if streams => "/v1beta/models/m:streamGenerateContent?alt=sse",
        _ => "/v1beta/models/m:generateContent",
    }
}

fn body(api: &str, streams: bool, history: &[Value]) -> Value {
    let schema = json!({ "type": "object" });
    let mut body = match api {
        "chat" => json!({ "messages": history, "tools": [
            { "type": "function", "function": { "name": "read", "parameters": schema } }] }),
        "responses" => json!({ "input": history, "tools": [
            { "type": "function", "name": "read", "parameters": schema }] }),
        "messages" => json!({ "messages": history, "max_tokens": 512, "tools": [
            { "name": "read", "input_schema": schema }] }),
        _ => {
            return json!({ "contents": history,
                "tools": [{ "functionDeclarations": [{ "name": "read" }] }] });
        }
    };
    body["model"] = "m".into();
    body["stream"] = streams.into();
    body
}

/// Whether one of the strings in a value is `text`.
fn has(value: &Value, text: &str) -> bool {
    match value {
        Value::String(own) => own == text,
        Value::Array(all) => all.iter().any(|value| has(value, text)),
        Value::Object(fields) => fields.values().any(|value| has(value, text)),
        _ => false,
    }
}

fn has_tool(request: &Request) -> bool {
    request.json["tools"].to_string().contains(EXPAND)
}

/// The number of calls of ctx's tool in a history.
fn calls(request: &Request) -> usize {
    let mut json = request.json.clone();
    json["tools"].take();
    json.to_string().matches(&format!("\"{EXPAND}\"")).count()
}

fn call(name: &str, arguments: Value) -> Call {
    Call { name: name.to_owned(), arguments }
}

fn says(text: &str, calls: Vec<Call>) -> Step {
    Step::answer(Answer { text: text.to_owned(), calls, ..Answer::default() })
}

/// Returns a model that reads the first result before it answers.
fn reader() -> FakeProvider {
    let respond = |request: &Request| match (has_tool(request), calls(request)) {
        (true, 0) => says("Let me look.", vec![call(EXPAND, json!({ "id": "2" }))]),
        _ => Step::text("It has lines."),
    };
    FakeProvider::builder().respond(respond).start().unwrap()
}

#[tokio::test]
async fn the_model_reads_a_cut_result_and_the_client_sees_one_answer() {
    for (api, streams) in APIS.iter().flat_map(|api| [(*api, false), (*api, true)]) {
        let rig = Rig::new(reader(), Set::default()).await;
        let got = rig.post(path(api, streams), &body(api, streams, &history(api, 40))).await;
        assert_eq!(got.status, 200, "{api} {got:?}");
        let requests = rig.provider.requests();
        assert_eq!(requests.len(), 2, "{api} {streams}");
        assert!(!has(&requests[0].json, &file(0)), "{api}: nothing was cut");
        assert!(has(&requests[1].json, &file(0)), "{api} {streams}: {}", requests[1].json);
        assert!(!got.body.contains(EXPAND), "{api} {streams}: {}", got.body);
        let said: Vec<_> = ["Let me look.", "It has lines."].map(|text| got.body.find(text)).into();
        assert!(said[0].is_some() && said[0] < said[1], "{api} {streams}: {}", got.body);
        assert_eq!(rig.records().await[0].actions.get("retrieval"), Some(&1));
        is_whole(api, streams, &got.body);
        rig.end().await;
    }
}

/// Checks that an answer has one beginning, one end, and parts in order.
fn is_whole(api: &str, streams: bool, body: &str) {
    let count = |text: &str| body.matches(text).count();
    let events = || {
        let data = body.lines().filter_map(|line| line.strip_prefix("data: "));
        let events: Vec<Value> = data.filter_map(|data| serde_json::from_str(data).ok()).collect();
        events
    };
    match (api, streams) {
        ("chat", true) => {
            assert_eq!((count("[DONE]"), count("\"stop\"")), (1, 1), "{body}");
            assert_eq!(count("tool_calls"), 0, "{body}");
        }
        ("messages", true) => {
            assert_eq!((count("event: message_start"), count("event: message_stop")), (1, 1));
            let begun = events().into_iter().filter(|event| event["type"] == "content_block_start");
            let indices: Vec<_> = begun.map(|event| event["index"].clone()).collect();
            assert_eq!(indices, [0, 1], "{body}");
        }
        ("responses", true) => {
            let numbers = events().into_iter().map(|event| event["sequence_number"].clone());
            let numbers: Vec<_> = numbers.filter(|number| !number.is_null()).collect();
            let all: Vec<Value> = (0..numbers.len()).map(Value::from).collect();
            assert_eq!(numbers, all, "{body}");
            let end = events().pop().unwrap();
            assert_eq!(end["response"]["id"], events()[0]["response"]["id"]);
            assert_eq!(end["response"]["output"].as_array().map(Vec::len), Some(2), "{end}");
            assert_eq!(count("event: response.created"), 1);
        }
        (_, false) => drop(serde_json::from_str::<Value>(body).unwrap()),
        _ => assert_eq!(count("finishReason"), 1, "{body}"),
    }
}

#[tokio::test]
async fn calls_of_the_client_stay_and_get_the_results_with_theirs() {
    for (api, streams) in APIS.iter().flat_map(|api| [(*api, false), (*api, true)]) {
        let rig = Rig::new(calls_both(), Set::default()).await;
        calls_stay(&[&rig], api, streams).await;
        rig.end().await;
    }
}

/// Returns a model that calls a tool of ctx and one of the client in one answer.
pub(super) fn calls_both() -> FakeProvider {
    // Gemini's calls of this provider have no ids.
    let respond = |request: &Request| match (has_tool(request), calls(request)) {
        (true, 0) => {
            let own = call(EXPAND, json!({ "id": "2" }));
            says("Both.", vec![own, call("read", json!({ "path": "b.rs" }))])
        }
        _ => Step::text("Done."),
    };
    FakeProvider::builder().respond(respond).start().unwrap()
}

/// Sends a conversation to these proxies in turn, whose model calls both tools.
pub(super) async fn calls_stay(rigs: &[&Rig], api: &str, streams: bool) {
    let rig = |request: usize| rigs[request % rigs.len()];
    let mut all = history(api, 40);
    let got = rig(0).post(path(api, streams), &body(api, streams, &all)).await;
    assert_eq!((got.status.as_u16(), rig(0).provider.count()), (200, 1), "{api}");
    assert!(!got.body.contains(EXPAND) && got.body.contains("b.rs"), "{}", got.body);
    if streams {
        return;
    }
    let (answer, result) = answered(api, &got.json());
    all.extend([answer, result]);
    assert_eq!(rig(1).post(path(api, false), &body(api, false, &all)).await.status, 200);
    let sent = rig(1).last();
    // Gemini's results name their function too.
    assert_eq!(calls(&sent), if api == "gemini" { 2 } else { 1 }, "{api}");
    assert!(has(&sent.json, &file(0)) && has(&sent.json, "the client's"), "{api}");
    assert!(!sent.json.to_string().contains("#1"), "{api}");
    // The calls of ctx stay where they are when the conversation goes on.
    all.extend(history(api, 1).drain(1..3));
    let before = sent.json[history_key(api)].as_array().unwrap().clone();
    assert_eq!(rig(2).post(path(api, false), &body(api, false, &all)).await.status, 200);
    let sent = rig(2).last().json[history_key(api)].as_array().unwrap().clone();
    assert_eq!(sent[..before.len()], before, "{api}");
}

fn history_key(api: &str) -> &'static str {
    match api {
        "responses" => "input",
        "gemini" => "contents",
        _ => "messages",
    }
}

/// Returns the answer as the client sends it back, and the result of its call.
fn answered(api: &str, got: &Value) -> (Value, Value) {
    match api {
        "chat" => {
            let message = got["choices"][0]["message"].clone();
            let id = message["tool_calls"][0]["id"].clone();
            assert_eq!(message["tool_calls"].as_array().unwrap().len(), 1);
            (message, json!({ "role": "tool", "tool_call_id": id, "content": "the client's" }))
        }
        "responses" => {
            let items = got["output"].as_array().unwrap();
            let call = items.iter().find(|item| item["type"] == "function_call").unwrap();
            let id = &call["call_id"];
            let output = json!({ "type": "function_call_output", "call_id": id,
                "output": "the client's" });
            (call.clone(), output)
        }
        "gemini" => {
            let content = got["candidates"][0]["content"].clone();
            let response = json!({ "name": "read", "response": { "output": "the client's" } });
            let parts = json!([{ "functionResponse": response }]);
            (content, json!({ "role": "user", "parts": parts }))
        }
        _ => {
            let content = got["content"].as_array().unwrap();
            let call = content.iter().find(|block| block["type"] == "tool_use").unwrap();
            let result = json!({ "type": "tool_result", "tool_use_id": call["id"],
                "content": "the client's" });
            (
                json!({ "role": "assistant", "content": content }),
                json!({ "role": "user", "content": [result] }),
            )
        }
    }
}

#[tokio::test]
async fn requests_with_fixed_tools_get_no_others() {
    let rig = Rig::new(reader(), Set::default()).await;
    let mut all: Vec<(&str, Value)> =
        APIS.iter().map(|api| (*api, body(api, false, &history(api, 40)))).collect();
    all[0].1["response_format"] = json!({ "type": "json_object" });
    all[1].1["tools"][0] = json!({ "type": "custom", "name": "apply_patch",
        "format": { "type": "grammar", "syntax": "lark", "definition": "" } });
    all[2].1["tool_choice"] = json!({ "type": "any" });
    all[3].1["toolConfig"] = json!({ "functionCallingConfig": { "mode": "NONE" } });
    let mut none = body("chat", false, &history("chat", 41));
    none["tools"] = json!([]);
    all.push(("chat", none));
    for (api, body) in all {
        assert_eq!(rig.post(path(api, false), &body).await.status, 200);
        let sent = rig.last().json;
        assert!(sent != body, "{api}: nothing was cut");
        assert_eq!(sent["tools"], body["tools"], "{api}");
    }
    rig.end().await;
    let rig = Rig::new(reader(), Set::default()).await;
    let short = body("chat", false, &history("chat", 2));
    assert_eq!(rig.post(path("chat", false), &short).await.status, 200);
    assert_eq!(rig.last().json, short);
}

#[tokio::test]
async fn a_model_that_calls_for_ever_is_ended() {
    for (api, streams) in APIS.iter().flat_map(|api| [(*api, false), (*api, true)]) {
        let respond =
            |_: &Request| says("Again.", vec![call(EXPAND, json!({ "id": "[e:2], zz" }))]);
        let provider = FakeProvider::builder().respond(respond).start().unwrap();
        let rig = Rig::new(provider, Set::default()).await;
        let got = rig.post(path(api, streams), &body(api, streams, &history(api, 40))).await;
        assert_eq!((got.status.as_u16(), rig.provider.count()), (200, 9), "{api} {streams}");
        assert!(!got.body.contains(EXPAND), "{api} {streams} {}", got.body);
        for end in ["tool_use\"", "\"tool_calls\""] {
            assert!(!got.body.contains(end), "{api} {streams} {}", got.body);
        }
        rig.end().await;
    }
}

#[tokio::test]
async fn a_refused_result_is_left_out_and_a_dead_provider_ends_the_answer() {
    for is_dead in [false, true] {
        let respond = move |request: &Request| match calls(request) {
            0 => says("Let me look.", vec![call(EXPAND, json!({ "id": "2" }))]),
            _ if is_dead || has(&request.json, &file(0)) => Step::overflow(),
            _ => Step::text("It has lines."),
        };
        let provider = FakeProvider::builder().respond(respond).start().unwrap();
        let rig = Rig::new(provider, Set::default()).await;
        let got = rig
            .post(path("messages", true), &body("messages", true, &history("messages", 40)))
            .await;
        assert_eq!(rig.provider.count(), 3);
        assert_eq!(got.body.contains("It has lines."), !is_dead, "{}", got.body);
        assert_eq!(got.body.matches("event: message_stop").count(), 1, "{}", got.body);
        assert!(!got.body.contains("tool_use"), "{}", got.body);
    }
}

#[tokio::test]
async fn messages_are_found_by_their_words() {
    let respond = |request: &Request| match calls(request) {
        _ if request.json.to_string().contains("file 7: ") => Step::text("Found."),
        _ => says("", vec![call("ctx_recall", json!({ "query": "what did file7.rs say?" }))]),
    };
    let provider = FakeProvider::builder().respond(respond).start().unwrap();
    let rig = Rig::new(provider, Set::default()).await;
    let got = rig.post(path("chat", false), &body("chat", false, &history("chat", 40))).await;
    assert_eq!((got.status.as_u16(), rig.provider.count()), (200, 2), "{}", rig.last().json);
    assert!(got.body.contains("Found."));
}

#[tokio::test]
async fn arguments_of_another_type_and_calls_of_stored_histories_are_understood() {
    let respond = |request: &Request| match calls(request) {
        0 => {
            let own = call(EXPAND, json!({ "id": 2, "from": null }));
            says("Both.", vec![own, call("read", json!({ "path": "b.rs" }))])
        }
        _ => Step::text("Done."),
    };
    let provider = FakeProvider::builder().respond(respond).start().unwrap();
    let rig = Rig::new(provider, Set::default()).await;
    let all = history("responses", 40);
    let got = rig.post(path("responses", false), &body("responses", false, &all)).await.json();
    let (_, output) = answered("responses", &got);
    let mut next = body("responses", false, &[output]);
    next["previous_response_id"] = got["id"].clone();
    assert_eq!(rig.post(path("responses", false), &next).await.status, 200);
    let sent = rig.last();
    assert_eq!(calls(&sent), 1, "{}", sent.json);
    assert!(has(&sent.json, &file(0)) && has(&sent.json, "the client's"));
}

#[tokio::test]
async fn a_provider_that_fails_in_a_later_round_breaks_the_answer() {
    let respond = |request: &Request| match calls(request) {
        0 => says("Let me look.", vec![call(EXPAND, json!({ "id": "2" }))]),
        _ => Step::error(ctx_testkit::provider::FailureKind::RateLimited),
    };
    let provider = FakeProvider::builder().respond(respond).start().unwrap();
    let rig = Rig::new(provider, Set::default()).await;
    let url = format!("{}{}", rig.url, path("chat", true));
    let request = ctx_model::Request {
        method: Method::POST,
        url: Url::parse(&url).unwrap(),
        headers: [(axum::http::header::AUTHORIZATION, "Bearer k".parse().unwrap())]
            .into_iter()
            .collect(),
        body: body("chat", true, &history("chat", 40)).to_string().into(),
    };
    let mut response = rig.client.send(request).await.unwrap();
    assert!(response.body.read_up_to(1 << 20).await.is_err());
    assert_eq!(rig.provider.count(), 2);
}

#[tokio::test]
async fn tools_in_each_request_do_not_replace_a_reference_that_fits() {
    let config = "{ server: { summaries: 'extractive', retrieval: 'tool' } }";
    let rig = Rig::new(reader(), Set { config, ..Set::default() }).await;
    let first = body("responses", false, &history("responses", 1));
    let got = rig.post(path("responses", false), &first).await.json();
    assert!(has_tool(&rig.provider.requests()[0]));
    let mut next = body("responses", false, &[user("And now?")]);
    next["previous_response_id"] = got["id"].clone();
    assert_eq!(rig.post(path("responses", false), &next).await.status, 200);
    assert_eq!(rig.last().json, next);
}

#[tokio::test]
async fn the_tools_are_added_where_the_cache_breaks_anyway() {
    let provider = FakeProvider::builder().respond(|_| Step::text("done")).start().unwrap();
    let rig = Rig::new(provider, Set::default()).await;
    let (mut shortened, mut tools) = (0, None);
    for n in 1..40 {
        let mut all = history("chat", n);
        all.pop();
        // A result that is shortened when it is sent first.
        if n > 1 {
            all[4]["content"] = "a long line of a log file\n".repeat(2_000).into();
        }
        let body = body("chat", false, &all);
        assert_eq!(rig.post(path("chat", false), &body).await.status, 200);
        let sent = rig.last();
        if has_tool(&sent) {
            let count = sent.json["messages"].as_array().unwrap().len();
            assert!(count < all.len(), "{n}: nothing but the new result is cut");
            let now = sent.json["tools"].clone();
            assert_eq!(&now, tools.get_or_insert(now.clone()));
            continue;
        }
        assert!(tools.is_none(), "{n}: the tools went");
        shortened += usize::from(sent.json["messages"] != body["messages"]);
    }
    assert!(shortened > 0 && tools.is_some(), "{shortened}");
}

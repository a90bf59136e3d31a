//! The answers, in each API.

use ctx_core::Usage;
use ctx_testkit::provider::{Answer, Call, FakeProvider, Finish, Report, Step};
use serde_json::{Value, json};

use crate::client::{self, get, post};

const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";
const MESSAGES: &str = "/v1/messages";
const OLLAMA: &str = "/api/chat";

fn prompt(path: &str, stream: bool) -> Value {
    let user = json!([{ "role": "user", "content": "What is in src/lib.rs?" }]);
    let key = if path == RESPONSES { "input" } else { "messages" };
    json!({ "model": "m", "stream": stream, key: user, "stream_options": { "include_usage": true } })
}

fn asked(path: &str, stream: bool, step: Step) -> client::Answer {
    let provider = FakeProvider::builder().script([step]).start().unwrap();
    let answer = post(&provider, path, &prompt(path, stream));
    assert_eq!((answer.status, answer.whole), (200, true), "{path} {}", answer.text());
    answer
}

/// The location of the text: path, not streamed, streamed.
const TEXT: [(&str, &str, &str); 4] = [
    (CHAT, "/choices/0/message/content", "/choices/0/delta/content"),
    (RESPONSES, "/output/0/content/0/text", "/delta"),
    (MESSAGES, "/content/0/text", "/delta/text"),
    (OLLAMA, "/message/content", "/message/content"),
];

#[test]
fn a_text_is_sent_in_every_api_whole_and_as_a_stream() {
    let text = "It holds the parser. 😀 它很小。\n".repeat(20);
    for (path, whole, delta) in TEXT {
        let answer = asked(path, false, Step::text(&text)).json();
        assert_eq!(answer.pointer(whole), Some(&json!(text)), "{path}: {answer}");
        for step in [
            Step::text(&text),
            Step::text(&text).crlf(),
            Step::text(&text).write_bytes(7),
            Step::text(&text).write_bytes(1).crlf(),
        ] {
            let answer = asked(path, true, step.clone());
            assert_eq!(answer.joined(delta), text, "{path} {step:?}");
        }
    }
}

#[test]
fn a_stream_has_many_events_and_the_end_of_its_api() {
    let ends = [
        (CHAT, "[DONE]"),
        (RESPONSES, "response.completed"),
        (MESSAGES, "message_stop"),
        (OLLAMA, "\"done\":true"),
    ];
    for (path, end) in ends {
        let events = asked(path, true, Step::text("word ".repeat(40))).events();
        assert!(events.len() > 8, "{path}: {events:?}");
        assert!(events.last().unwrap().contains(end), "{path}: {events:?}");
    }
    let crlf = asked(CHAT, true, Step::text("one").crlf()).text();
    assert!(crlf.contains("\r\n\r\n") && crlf.contains(": still here\r\n"), "{crlf}");
}

#[test]
fn a_finish_reason_has_the_wording_of_the_api() {
    let rows = [
        (CHAT, Finish::Stop, "/choices/0/finish_reason", "stop"),
        (CHAT, Finish::Length, "/choices/0/finish_reason", "length"),
        (CHAT, Finish::ContentFilter, "/choices/0/finish_reason", "content_filter"),
        (CHAT, Finish::WindowFull, "/choices/0/finish_reason", "model_context_window_exceeded"),
        (RESPONSES, Finish::Stop, "/status", "completed"),
        (RESPONSES, Finish::Length, "/incomplete_details/reason", "max_output_tokens"),
        (RESPONSES, Finish::ContentFilter, "/incomplete_details/reason", "content_filter"),
        (MESSAGES, Finish::Stop, "/stop_reason", "end_turn"),
        (MESSAGES, Finish::Length, "/stop_reason", "max_tokens"),
        (MESSAGES, Finish::ContentFilter, "/stop_reason", "refusal"),
        (MESSAGES, Finish::WindowFull, "/stop_reason", "model_context_window_exceeded"),
        (OLLAMA, Finish::Stop, "/done_reason", "stop"),
        (OLLAMA, Finish::Length, "/done_reason", "length"),
    ];
    for (path, finish, place, word) in rows {
        let said = Answer { text: "x".into(), finish: Some(finish), ..Answer::default() };
        let whole = asked(path, false, Step::answer(said.clone())).json();
        assert_eq!(whole.pointer(place), Some(&json!(word)), "{path} {finish:?}: {whole}");
        let stream = asked(path, true, Step::answer(said)).text();
        assert!(stream.contains(&format!("\"{word}\"")), "{path} {finish:?}: {stream}");
    }
    let cut_off = asked(CHAT, false, Step::cut_off("x")).json();
    assert_eq!(cut_off["choices"][0]["finish_reason"], "length");
}

#[test]
fn tool_calls_and_thinking_are_sent_in_every_api() {
    let calls = vec![
        Call { name: "read".into(), arguments: json!({ "path": "a.rs" }) },
        Call { name: "run".into(), arguments: json!({ "command": "cargo test" }) },
    ];
    let said = Answer { thinking: "hm, let me see".into(), calls, ..Answer::default() };
    for path in [CHAT, RESPONSES, MESSAGES, OLLAMA] {
        let whole = asked(path, false, Step::answer(said.clone())).text();
        let stream = asked(path, true, Step::answer(said.clone())).text();
        for (form, answer) in [("whole", whole), ("stream", stream)] {
            for part in ["\"read\"", "\"run\"", "a.rs", "hm, let me see"] {
                assert!(answer.contains(part), "{path} {form} has no {part}: {answer}");
            }
        }
    }
    let chat = asked(CHAT, true, Step::call("read", json!({ "path": "a.rs" })));
    let arguments = chat.joined("/choices/0/delta/tool_calls/0/function/arguments");
    assert_eq!(arguments, r#"{"path":"a.rs"}"#);
    assert!(chat.text().contains(r#""finish_reason":"tool_calls""#));
    let anthropic = asked(MESSAGES, true, Step::call("read", json!({ "path": "a.rs" })));
    assert_eq!(anthropic.joined("/delta/partial_json"), r#"{"path":"a.rs"}"#);
    let broken = asked(CHAT, false, Step::call("read", json!("{\"path\": oops"))).json();
    let function = &broken["choices"][0]["message"]["tool_calls"][0]["function"];
    assert_eq!(function["arguments"], "{\"path\": oops");
}

#[test]
fn usage_is_scripted_computed_or_missing() {
    let given = Usage { input: 70, output: 9, cache_read: 30, cache_write: 0, ..Usage::default() };
    // Path, pointers to the tokens of the prompt and of the answer, and their expected values.
    let rows = [
        (CHAT, "/usage/prompt_tokens", "/usage/completion_tokens", [100, 9]),
        (RESPONSES, "/usage/input_tokens", "/usage/output_tokens", [100, 9]),
        (MESSAGES, "/usage/input_tokens", "/usage/output_tokens", [70, 9]),
        (OLLAMA, "/prompt_eval_count", "/eval_count", [100, 9]),
    ];
    for (path, prompt, output, expected) in rows {
        let with = |usage| Answer { text: "x".into(), usage, ..Answer::default() };
        let whole = asked(path, false, Step::answer(with(Report::Given(given)))).json();
        let found = [prompt, output].map(|place| whole.pointer(place).and_then(Value::as_u64));
        assert_eq!(found, expected.map(Some), "{path}: {whole}");
        let stream = asked(path, true, Step::answer(with(Report::Given(given))));
        assert!(stream.text().contains("100") || path == MESSAGES, "{path}: {}", stream.text());
        let computed = asked(path, false, Step::text("four more words here")).json();
        let tokens = [prompt, output].map(|place| computed.pointer(place).and_then(Value::as_u64));
        // 22 characters in the prompt, 20 in the answer, four per token.
        assert_eq!(tokens, [Some(6), Some(5)], "{path}: {computed}");
        let nothing = asked(path, false, Step::answer(with(Report::Nothing))).json();
        assert_eq!(nothing.pointer(prompt), None, "{path}: {nothing}");
    }
}

#[test]
fn a_chat_stream_reports_usage_only_if_requested() {
    let provider = FakeProvider::builder().start().unwrap();
    let mut body = prompt(CHAT, true);
    let with = post(&provider, CHAT, &body).values();
    assert!(with.last().unwrap()["usage"]["prompt_tokens"].is_u64());
    body.as_object_mut().unwrap().remove("stream_options");
    let without = post(&provider, CHAT, &body).text();
    assert!(!without.contains("usage"), "{without}");
}

#[test]
fn a_prompt_that_continues_an_earlier_one_is_read_from_the_cache() {
    let provider = FakeProvider::builder().script([Step::text("ok").always()]).start().unwrap();
    let long = "a line of the first message\n".repeat(100);
    let mut messages = vec![json!({ "role": "user", "content": long })];
    let mut cached = |path: &str, place: &str, mark: bool| {
        let mut body = json!({ "model": path, "messages": messages });
        if mark {
            body["system"] =
                json!([{ "type": "text", "text": "s", "cache_control": { "type": "ephemeral" } }]);
        }
        let first = post(&provider, path, &body).json();
        messages.push(json!({ "role": "assistant", "content": "ok" }));
        messages.push(json!({ "role": "user", "content": "and the second?" }));
        body["messages"] = json!(messages);
        let second = post(&provider, path, &body).json();
        [first, second].map(|answer| answer.pointer(place).and_then(Value::as_u64).unwrap())
    };
    let [first, second] = cached(CHAT, "/usage/prompt_tokens_details/cached_tokens", false);
    assert!(first == 0 && (690..=705).contains(&second), "{first} {second}");
    let [first, second] = cached(MESSAGES, "/usage/cache_read_input_tokens", true);
    assert!(first == 0 && second >= 690, "{first} {second}");
    let unmarked = post(&provider, MESSAGES, &json!({ "model": MESSAGES, "messages": messages }));
    assert_eq!(unmarked.json()["usage"]["cache_read_input_tokens"], 0);
}

#[test]
fn without_a_script_the_answer_is_a_summary_of_the_prompt_within_its_length() {
    let provider = FakeProvider::builder().start().unwrap();
    let text = "Summarise.\n<conversation>\n[e:01] User: never touch vendor/\n\
                [e:02] Tool: exit 101 in src/lib.rs\n</conversation>";
    let body = json!({ "model": "m", "messages": [{ "role": "user", "content": text }] });
    let answer = post(&provider, CHAT, &body).json();
    let said = answer["choices"][0]["message"]["content"].as_str().unwrap();
    for part in ["## Goal", "never touch vendor/ [e:01]", "exit 101 in src/lib.rs [e:02]"] {
        assert!(said.contains(part), "{said}");
    }
    let long = text.replace("exit 101", &"exit 101 and more, ".repeat(100));
    let user = json!([{ "role": "user", "content": long.repeat(50) }]);
    let body = json!({ "model": "m", "max_tokens": 100, "messages": user });
    let answer = post(&provider, CHAT, &body).json();
    assert!(answer["choices"][0]["message"]["content"].as_str().unwrap().len() <= 400);
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
}

#[test]
fn an_empty_answer_is_empty_in_every_api() {
    for (path, place, delta) in TEXT {
        let whole = asked(path, false, Step::text("")).json();
        let said = whole.pointer(place).and_then(Value::as_str).unwrap_or_default();
        assert_eq!(said, "", "{path}: {whole}");
        assert_eq!(asked(path, true, Step::text("")).joined(delta), "", "{path}");
    }
}

#[test]
fn a_huge_answer_is_complete() {
    let text = "0123456789".repeat(300_000);
    for (path, _, delta) in TEXT {
        assert_eq!(asked(path, true, Step::text(&text)).joined(delta).len(), text.len(), "{path}");
    }
}

#[test]
fn models_token_counts_and_embeddings_need_no_script() {
    let builder = FakeProvider::builder().models(["a", "b"]).dimensions(16);
    let provider = builder.script([Step::text("untouched")]).start().unwrap();
    let models = get(&provider, "/v1/models").json();
    let ids: Vec<_> = models["data"].as_array().unwrap().iter().map(|m| &m["id"]).collect();
    assert_eq!(ids, ["a", "b"]);
    let body = json!({ "messages": [{ "role": "user", "content": "12345678" }] });
    let count = post(&provider, "/v1/messages/count_tokens", &body).json();
    assert_eq!(count, json!({ "input_tokens": 2 }));

    let body = json!({ "model": "e", "input": ["one text", "another"] });
    let openai = post(&provider, "/v1/embeddings", &body).json();
    assert_eq!(openai["data"][1]["embedding"].as_array().unwrap().len(), 16);
    let ollama = post(&provider, "/api/embed", &body).json();
    assert_eq!(ollama["embeddings"][1], openai["data"][1]["embedding"]);
    let small = json!({ "input": "x", "dimensions": 3, "encoding_format": "base64" });
    let small = post(&provider, "/v1/embeddings", &small).json();
    assert_eq!(small["data"][0]["embedding"].as_str().unwrap().len(), 16);
    assert_eq!(provider.steps_left(), 1);
}

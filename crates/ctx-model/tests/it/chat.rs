//! Chat, streamed and whole, for three families of APIs.

use std::sync::Arc;

use ctx_core::{ErrorKind, Summarizer, SummaryRequest, Tokens, Usage};
use ctx_model::{Api, Client, HttpModel, ModelFacts, Stop};
use serde_json::json;

use crate::server::{
    Server, Step, endpoint, facts, json as json_response, model, request, response, stream,
};
use crate::streams::{COMPLETIONS, TEXT, streamed};

#[tokio::test]
async fn a_streamed_answer_is_read_with_its_usage() {
    for api in Api::ALL {
        let server = Server::with(stream(streamed(api)));
        let answer = model(&server, api).ask(&request()).await.unwrap();
        assert_eq!((answer.text.as_str(), answer.stop), (TEXT, Stop::End), "{api}");
        let usage = answer.usage.unwrap();
        assert_eq!((usage.input, usage.cache_read, usage.output), (20, 100, 9), "{api}");
        assert_eq!(usage.total(), 129, "{api}");
    }
}

#[tokio::test]
async fn a_stream_may_come_in_pieces_of_any_size() {
    for api in Api::ALL {
        let all = stream(streamed(api)).into_bytes();
        let pieces = |size: usize| all.chunks(size).map(|c| Step::Send(c.to_vec())).collect();
        let server = Server::start([1, 7, 64].map(pieces).into());
        let model = model(&server, api);
        for _ in 0..3 {
            assert_eq!(model.ask(&request()).await.unwrap().text, TEXT, "{api}");
        }
    }
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood() {
    let completions = json!({
        "choices": [{ "message": { "role": "assistant", "content": TEXT }, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 120, "completion_tokens": 9 },
    });
    let responses = json!({
        "status": "completed",
        "output": [
            { "type": "reasoning", "summary": [] },
            { "type": "message", "content": [{ "type": "output_text", "text": TEXT }] },
        ],
        "usage": { "input_tokens": 120, "output_tokens": 9 },
    });
    let anthropic = json!({
        "type": "message",
        "content": [{ "type": "text", "text": TEXT }],
        "stop_reason": "end_turn",
        "usage": { "input_tokens": 120, "output_tokens": 9 },
    });
    for (api, body) in Api::ALL.into_iter().zip([completions, responses, anthropic]) {
        // With and without a JSON content type.
        for reply in
            [json_response(200, &body.to_string()), response(200, "", &format!("\n {body}"))]
        {
            let server = Server::with(reply);
            let answer = model(&server, api).ask(&request()).await.unwrap();
            assert_eq!((answer.text.as_str(), answer.stop), (TEXT, Stop::End), "{api}");
            assert_eq!(answer.usage.unwrap().prompt(), 120, "{api}");
        }
    }
}

#[tokio::test]
async fn each_api_is_asked_in_its_own_words() {
    let ask = async |api| {
        let server = Server::with(stream(streamed(api)));
        model(&server, api).ask(&request()).await.unwrap();
        server.seen().remove(0)
    };
    let seen = ask(Api::OpenAiCompletions).await;
    assert_eq!(seen.line, "POST /v1/chat/completions HTTP/1.1");
    assert_eq!(seen.header("authorization"), Some("Bearer sk-test-key-that-is-secret"));
    let body = seen.json();
    assert_eq!(body["messages"][0], json!({ "role": "system", "content": "You summarise." }));
    assert_eq!(body["messages"][1]["content"], request().prompt);
    assert_eq!(body["stream_options"]["include_usage"], true);
    assert_eq!(
        (&body["model"], &body["max_tokens"], &body["stream"]),
        (&json!("model-1"), &json!(500), &json!(true))
    );

    let seen = ask(Api::OpenAiResponses).await;
    assert_eq!(seen.line, "POST /v1/responses HTTP/1.1");
    let body = seen.json();
    assert_eq!((&body["instructions"], &body["store"]), (&json!("You summarise."), &json!(false)));
    assert_eq!(body["input"][0]["content"][0]["text"], request().prompt);
    assert_eq!(body["max_output_tokens"], 500);

    let seen = ask(Api::AnthropicMessages).await;
    assert_eq!(seen.line, "POST /v1/messages HTTP/1.1");
    assert_eq!(seen.header("x-api-key"), Some("sk-test-key-that-is-secret"));
    assert_eq!(seen.header("anthropic-version"), Some("2023-06-01"));
    let body = seen.json();
    let text = |text: &str| json!([{ "type": "text", "text": text }]);
    assert_eq!((&body["system"], &body["max_tokens"]), (&text("You summarise."), &json!(500)));
    let content = text(&request().prompt);
    assert_eq!(body["messages"], json!([{ "role": "user", "content": content }]));
}

#[tokio::test]
async fn stop_reasons_mean_the_same_everywhere() {
    let chat = |reason: &str| {
        stream(&format!(
            "data: {{\"choices\":[{{\"delta\":{{\"content\":\"x\"}},\"finish_reason\":\"{reason}\"}}]}}\n\ndata: [DONE]\n\n"
        ))
    };
    let anthropic = |reason: &str| {
        stream(&format!(
            "data: {{\"type\":\"content_block_delta\",\"delta\":{{\"text\":\"x\"}}}}\n\ndata: {{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":\"{reason}\"}}}}\n\ndata: {{\"type\":\"message_stop\"}}\n\n"
        ))
    };
    let incomplete = |reason: &str| {
        stream(&format!(
            "data: {{\"type\":\"response.output_text.delta\",\"delta\":\"x\"}}\n\ndata: {{\"type\":\"response.incomplete\",\"response\":{{\"status\":\"incomplete\",\"incomplete_details\":{{\"reason\":\"{reason}\"}}}}}}\n\n"
        ))
    };
    use Api::{AnthropicMessages as A, OpenAiCompletions as C, OpenAiResponses as R};
    let filtered = None;
    for (api, reply, expected) in [
        (C, chat("stop"), Some(false)),
        (C, chat("eos"), Some(false)),
        (C, chat("tool_calls"), Some(false)),
        (C, chat("length"), Some(true)),
        (C, chat("model_context_window_exceeded"), Some(true)),
        (C, chat("content_filter"), filtered),
        (A, anthropic("stop_sequence"), Some(false)),
        (A, anthropic("max_tokens"), Some(true)),
        (A, anthropic("model_context_window_exceeded"), Some(true)),
        (A, anthropic("refusal"), filtered),
        (R, incomplete("max_output_tokens"), Some(true)),
        (R, incomplete("content_filter"), filtered),
    ] {
        let server = Server::with(reply.clone());
        let result = model(&server, api).summarize(request()).await;
        match expected {
            Some(cut_off) => {
                let summary = result.unwrap();
                assert_eq!((summary.text.as_str(), summary.cut_off), ("x", cut_off), "{reply}");
            }
            None => assert_eq!(result.unwrap_err().kind(), ErrorKind::Capability, "{reply}"),
        }
    }
}

#[tokio::test]
async fn fields_that_a_server_refuses_are_omitted_from_later_requests() {
    let refuse = |text: &str| {
        let body = json!({ "error": { "message": text } }).to_string();
        vec![Step::Send(json_response(400, &body).into())]
    };
    let server = Server::start(vec![
        refuse("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
        refuse("Unrecognized request argument supplied: stream_options"),
        refuse("unknown field reasoning_effort"),
        vec![Step::Send(stream(COMPLETIONS).into())],
    ]);
    let facts = ModelFacts { reasoning: true, max_output: Some(Tokens(4_000)), ..facts() };
    let endpoint = endpoint(&server, Api::OpenAiCompletions);
    let model = HttpModel::new(facts, endpoint, Arc::new(Client::default()));
    assert_eq!(model.ask(&request()).await.unwrap().text, TEXT);
    assert_eq!(model.ask(&request()).await.unwrap().text, TEXT);
    let bodies: Vec<_> = server.seen().iter().map(|seen| seen.json()).collect();
    assert_eq!(bodies.len(), 5, "the second request uses what was learned");
    assert_eq!(bodies[0]["reasoning_effort"], "low");
    // Tokens for thinking are added, up to the model's maximum.
    assert_eq!(bodies[0]["max_tokens"], 4_000);
    for key in ["max_tokens", "stream_options", "reasoning_effort"] {
        assert!(bodies[4].get(key).is_none(), "{key}");
    }
    assert_eq!(bodies[4]["max_completion_tokens"], 4_000);
    // A refusal that reveals nothing new is final.
    let server = Server::start(vec![refuse("max_completion_tokens is bad")]);
    let error = self::model(&server, Api::OpenAiCompletions).ask(&request()).await.unwrap_err();
    assert_eq!((error.kind(), server.seen().len()), (ErrorKind::Upstream, 2));
}

#[tokio::test]
async fn the_thinking_level_is_sent_in_the_terms_of_the_api() {
    for (api, level, field, word) in [
        (Api::OpenAiCompletions, Some("high"), "/reasoning_effort", Some("high")),
        (Api::OpenAiCompletions, Some("off"), "/reasoning_effort", Some("none")),
        (Api::OpenAiCompletions, None, "/reasoning_effort", None),
        (Api::OpenAiResponses, Some("high"), "/reasoning/effort", Some("high")),
        (Api::OpenAiResponses, None, "/reasoning/effort", None),
    ] {
        let server = Server::with(stream(COMPLETIONS));
        let model = self::model(&server, api);
        let mut request = crate::converse::hello();
        request.thinking = level.map(str::to_owned);
        // The scripted answer fits one API only; the test checks the request.
        let _ = ctx_core::ChatModel::answer(&model, request, &mut |_| {}).await;
        let sent = server.seen()[0].json();
        assert_eq!(
            sent.pointer(field).and_then(serde_json::Value::as_str),
            word,
            "{api:?} {level:?}: {sent}"
        );
    }
}

#[tokio::test]
async fn the_requested_answer_limit_includes_the_overhead_of_the_model() {
    for (reasoning, window, overhead) in
        [(false, 32_000, 0), (true, 200_000, 8_192), (true, 16_000, 4_000)]
    {
        let server = Server::with(stream(COMPLETIONS));
        let facts = ModelFacts { reasoning, window: Tokens(window), ..facts() };
        let endpoint = endpoint(&server, Api::OpenAiCompletions);
        let model = HttpModel::new(facts, endpoint, Arc::new(Client::default()));
        assert_eq!(model.answer_overhead(), Tokens(overhead));
        model.ask(&request()).await.unwrap();
        assert_eq!(server.seen()[0].json()["max_tokens"], 500 + overhead);
    }
}

#[tokio::test]
async fn prompts_that_did_not_fit_are_detected_by_the_usage() {
    let reply = |prompt_tokens: u32, content: &str, reason: &str| {
        let event = json!({
            "choices": [{ "delta": { "content": content }, "finish_reason": reason }],
            "usage": { "prompt_tokens": prompt_tokens, "completion_tokens": 1 },
        });
        stream(&format!("data: {event}\n\ndata: [DONE]\n\n"))
    };
    let long = SummaryRequest { prompt: "word ".repeat(20_000), ..request() };
    // The window is 32,000; the prompt has 100,000 characters.
    for (reply, truncates, kind) in [
        (reply(33_000, "x", "stop"), false, Some(ErrorKind::Overflow)),
        (reply(31_900, "", "length"), false, Some(ErrorKind::Overflow)),
        (reply(31_900, "x", "length"), false, None),
        (reply(2_050, "x", "stop"), true, Some(ErrorKind::Overflow)),
        (reply(2_050, "x", "stop"), false, None),
        (reply(20_000, "x", "stop"), true, None),
        (reply(0, "x", "stop"), true, None),
        (reply(10, "", "model_context_window_exceeded"), false, Some(ErrorKind::Overflow)),
    ] {
        let server = Server::with(reply.clone());
        let facts = ModelFacts { truncates, ..facts() };
        let endpoint = endpoint(&server, Api::OpenAiCompletions);
        let model = HttpModel::new(facts, endpoint, Arc::new(Client::default()));
        let found = model.ask(&long).await.err().map(|error| error.kind());
        assert_eq!(found, kind, "{truncates} {reply}");
    }
}

#[tokio::test]
async fn it_is_a_summarizer_with_name_window_and_cost() {
    let server = Server::with(stream(COMPLETIONS));
    let prices =
        ctx_model::Prices { input: 1.0, output: 10.0, cache_read: Some(0.1), cache_write: None };
    let facts = ModelFacts { prices: Some(prices), ..facts() };
    let endpoint = endpoint(&server, Api::OpenAiCompletions);
    let model = HttpModel::new(facts, endpoint, Arc::new(Client::default()));
    let summarizer: &dyn Summarizer = &model;
    assert_eq!((summarizer.name(), summarizer.window()), ("test/model-1", Tokens(32_000)));
    let summary = summarizer.summarize(request()).await.unwrap();
    let cost = summarizer.cost(&summary.usage.unwrap()).unwrap();
    assert!((cost - (20.0 + 90.0 + 10.0) / 1e6).abs() < 1e-12, "{cost}");
    let usage = Usage::default();
    assert_eq!(self::model(&server, Api::OpenAiCompletions).cost(&usage), None);
}

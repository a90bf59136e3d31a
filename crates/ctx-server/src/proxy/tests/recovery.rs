//! Prompts that the provider refuses as too long.

use ctx_core::Tokens;
use ctx_testkit::provider::{FakeProvider, Step, Words};

use super::*;

/// Starts a provider with a smaller window than the proxy assumes.
fn strict(window: u32) -> FakeProvider {
    FakeProvider::builder().window(Tokens(window)).respond(|_| Step::text("done")).start().unwrap()
}

#[tokio::test]
async fn a_refused_request_is_retried_smaller_before_the_client_sees_it() {
    let rig = Rig::new(strict(9_000), Set { window: Some(64_000), ..Set::default() }).await;
    for stream in [true, false] {
        let mut all = session(20, 1_500);
        all[1] = user(format!("Read the files. Streaming: {stream}"));
        let body = json!({ "model": "m", "messages": all, "stream": stream, "max_tokens": 500 });
        let got = rig.post("/v1/chat/completions", &body).await;
        assert_eq!(got.status, 200, "{got:?}");
        assert!(got.body.contains("done"));
        assert!(rig.last().prompt.tokens() <= 9_000);
    }
    for session in rig.proxy.trace().sessions() {
        let record = &session.requests[0];
        assert!((2..=4).contains(&record.attempts), "{record:?}");
        assert_eq!((record.outcome, record.status), (ctx_trace::RequestOutcome::Ok, Some(200)));
        assert!(record.compaction.is_some());
    }
    let metrics = rig.send(Method::GET, "/metrics", &[], "").await.body;
    assert!(metrics.contains("ctx_recoveries_total 2\n"), "{metrics}");
}

#[tokio::test]
async fn the_window_is_learned_from_a_refusal() {
    let rig = Rig::new(strict(9_000), Set { window: Some(64_000), ..Set::default() }).await;
    let mut all = session(20, 1_500);
    rig.chat(&all).await;
    let asked = rig.provider.count();
    for n in 20..26 {
        all.extend(work(n, 700));
        assert_eq!(rig.chat(&all).await.status, 200);
    }
    let again = rig.provider.count() - asked;
    assert!(again <= 8, "{again} requests for 6 answers");
}

#[tokio::test]
async fn an_overflow_inside_a_stream_is_recovered() {
    let event = "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"id\":\
        \"r\",\"status\":\"failed\",\"error\":{\"code\":\"context_length_exceeded\",\"message\":\
        \"Your input exceeds the context window of this model.\"}}}\n\n";
    let provider = FakeProvider::builder()
        .script([Step::raw(200, "text/event-stream", event)])
        .respond(|_| Step::text("done"))
        .start()
        .unwrap();
    let rig = Rig::new(provider, Set::default()).await;
    let mut input = vec![json!({ "type": "message", "role": "user", "content": "Read." })];
    for n in 0..12 {
        let id = format!("call_{n}");
        input.push(json!({ "type": "function_call", "call_id": id, "name": "read",
            "arguments": "{}" }));
        let output = format!("line {n} of a file\n").repeat(200);
        input.push(json!({ "type": "function_call_output", "call_id": id, "output": output }));
    }
    let body = json!({ "model": "m", "input": input, "stream": true });
    let got = rig.post("/v1/responses", &body).await;
    assert!(got.body.contains("done") && !got.body.contains("context_length"), "{got:?}");
    assert_eq!(rig.provider.count(), 2);
    let sizes: Vec<usize> = rig.provider.requests().iter().map(|asked| asked.body.len()).collect();
    assert!(sizes[1] < sizes[0], "{sizes:?}");
}

#[tokio::test]
async fn the_last_refusal_reaches_the_client_if_all_retries_fail() {
    for words in [Words::OpenaiChat, Words::Anthropic] {
        let provider = FakeProvider::builder()
            .words(words)
            .script([Step::overflow().always()])
            .start()
            .unwrap();
        let rig = Rig::new(provider, Set::default()).await;
        let got = rig.chat(&session(12, 700)).await;
        assert_eq!(got.status, 400);
        let asked = rig.provider.count();
        assert!((2..=4).contains(&asked), "{asked} requests");
        let body = rig.last().body;
        let url = rig.provider.url();
        let path = "/v1/chat/completions";
        let direct = send(&rig.client, &url, Method::POST, path, &[], body).await;
        assert_eq!(got.body, direct.body, "the client gets the provider's own error");
        assert_eq!(rig.records().await[0].outcome, ctx_trace::RequestOutcome::Refused);
    }
}

#[tokio::test]
async fn a_refusal_after_the_first_content_reaches_the_client() {
    let mut text = String::from("data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n");
    text.push_str(
        "data: {\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"too long\"}}\n\n",
    );
    let provider = FakeProvider::builder()
        .script([Step::raw(200, "text/event-stream", text.clone())])
        .start()
        .unwrap();
    let rig = Rig::new(provider, Set::default()).await;
    let got = rig.chat(&session(4, 100)).await;
    assert_eq!(got.body, text);
    assert_eq!(rig.provider.count(), 1);
    assert_eq!(rig.records().await[0].outcome, ctx_trace::RequestOutcome::Failed);
}

#[tokio::test]
async fn the_providers_count_corrects_the_estimate() {
    let rig = Rig::new(strict(64_000), Set::default()).await;
    rig.chat(&session(4, 1_000)).await;
    rig.chat(&session(5, 1_000)).await;
    let records = rig.records().await;
    assert!(records.iter().all(|record| record.prompt_tokens.is_some_and(|n| n > 3_000)));
    assert!(records[1].cached_tokens.is_some_and(|n| n > 3_000), "{records:?}");
    // The estimate of the second request matches the provider's count of the first.
    let off = |record: &ctx_trace::Record| {
        let counted = record.prompt_tokens.unwrap() as f64;
        (record.sent_tokens.get() as f64 / counted - 1.0).abs()
    };
    assert!(off(&records[1]) < 0.02, "{records:?}");
}

#[tokio::test]
async fn a_request_to_a_catalogued_model_has_a_price() {
    for (model, is_known) in [("anthropic/claude-sonnet-4-5", true), ("m", false)] {
        let rig = Rig::new(strict(64_000), Set::default()).await;
        let body = json!({ "model": model, "messages": session(4, 1_000) });
        rig.post("/v1/chat/completions", &body).await;
        let record = &rig.records().await[0];
        assert_eq!(record.cost_usd.is_some(), is_known, "{record:?}");
        // Input costs 3 dollars per million tokens uncached, and a tenth of that cached.
        let prompt = record.prompt_tokens.unwrap() as f64;
        assert!(record.cost_usd.is_none_or(|usd| usd > prompt * 0.3e-6 && usd < prompt * 15e-6));
    }
}

#[tokio::test]
async fn the_price_of_an_answer_includes_the_providers_compaction() {
    let usage = json!({ "input_tokens": 1_000, "output_tokens": 0, "iterations": [
        { "type": "compaction", "input_tokens": 99_000, "output_tokens": 0 },
        { "type": "message", "input_tokens": 1_000, "output_tokens": 0 }] });
    let text = json!([{ "type": "text", "text": "done" }]);
    let answer = json!({ "type": "message", "role": "assistant", "content": text, "usage": usage });
    let answer = Step::raw(200, "application/json", answer.to_string());
    let rig =
        Rig::new(FakeProvider::builder().script([answer]).start().unwrap(), Set::default()).await;
    let body = json!({ "model": "claude-sonnet-4-5", "max_tokens": 9, "messages": [user("hi")] });
    rig.post("/v1/messages", &body).await;
    let record = &rig.records().await[0];
    assert_eq!(record.prompt_tokens, Some(1_000));
    assert!((record.cost_usd.unwrap() - 100_000.0 * 3e-6).abs() < 1e-9, "{record:?}");
}

#[tokio::test]
async fn summaries_are_made_by_the_same_provider_with_the_same_key() {
    let provider = FakeProvider::builder().respond(|request| {
        // A summary request has no tools.
        match request.json["tools"].is_array() {
            true => Step::text("done"),
            false => Step::new(ctx_testkit::provider::Reply::Summary),
        }
    });
    let config = "{ server: { summaries: 'upstream', backgroundRatio: 1 } }";
    let rig = Rig::new(provider.start().unwrap(), Set { config, ..Set::default() }).await;
    let all = talk(40, 600);
    let tools = json!([{ "type": "function", "function": { "name": "read" } }]);
    let body = json!({ "model": "m", "messages": all, "tools": tools });
    let got = rig.post("/v1/chat/completions", &body).await;
    assert!(got.body.contains("done"), "{got:?}");
    let asked = rig.provider.requests();
    assert!(asked.len() > 1, "a summary was requested");
    for request in &asked {
        assert_eq!((request.key(), request.model()), (Some("k"), "m"));
    }
    assert!(rig.records().await[0].compaction.is_some());
    assert!(rig.last().prompt.tokens() < 12_500);
}

#[tokio::test]
async fn a_refusal_without_numbers_of_only_the_newest_messages_is_recovered() {
    // Messages of this size would stay verbatim in the window that the proxy assumes.
    let provider = FakeProvider::builder()
        .limit_chars(80_000)
        .respond(|_| Step::text("done"))
        .start()
        .unwrap();
    let rig = Rig::new(provider, Set { window: Some(200_000), ..Set::default() }).await;
    let got = rig.chat(&session(11, 2_000)).await;
    assert_eq!(got.status, 200, "{got:?}");
    let got = rig.chat(&talk(40, 600)).await;
    assert_eq!(got.status, 200, "{got:?}");
}

#[tokio::test]
async fn a_window_below_the_engine_minimum_is_kept() {
    let rig = Rig::new(strict(8_000), Set { window: Some(64_000), ..Set::default() }).await;
    let mut all = talk(30, 600);
    for n in 0..6 {
        assert_eq!(rig.chat(&all).await.status, 200);
        all.push(json!({ "role": "assistant", "content": "It was the third." }));
        all.push(user(format!("And number {n}?")));
    }
    let warnings = rig.warnings.lock().unwrap().clone();
    assert!(!warnings.iter().any(|text| text.contains("engine failed")), "{warnings:?}");
    let records = rig.records().await;
    let attempts: u32 = records.iter().skip(1).map(|record| record.attempts).sum();
    assert!(attempts <= 7, "{records:?}");
}

#[tokio::test]
async fn implausible_counts_are_ignored() {
    let answer = |n: u64| {
        let body = json!({ "id": "x", "object": "chat.completion", "choices": [{ "index": 0,
            "message": { "role": "assistant", "content": "done" }, "finish_reason": "stop" }],
            "usage": { "prompt_tokens": n, "completion_tokens": 1 } });
        Step::raw(200, "application/json", body.to_string())
    };
    let provider = FakeProvider::builder()
        .script([answer(10), answer(1_000_000_000_000)])
        .respond(|_| Step::text("done"))
        .start()
        .unwrap();
    let rig = Rig::new(provider, Set::default()).await;
    for _ in 0..3 {
        rig.chat(&session(30, 1_500)).await;
    }
    let sizes: Vec<usize> = rig.provider.requests().iter().map(|asked| asked.body.len()).collect();
    assert!(sizes.windows(2).all(|two| two[0] == two[1]), "{sizes:?}");
}

fn refusals(provider: Vec<Step>) -> FakeProvider {
    FakeProvider::builder().script(provider).respond(|_| Step::text("done")).start().unwrap()
}

fn refused(status: u16, message: &str) -> Step {
    let body = json!({ "error": { "message": message, "type": "invalid_request_error" } });
    Step::raw(status, "application/json", body.to_string())
}

#[tokio::test]
async fn a_refusal_of_the_smaller_request_teaches_nothing() {
    let large = refused(413, "Payload Too Large");
    let rig = Rig::new(
        refusals(vec![large.clone(), large.clone(), large.clone(), large]),
        Set { window: Some(64_000), ..Set::default() },
    )
    .await;
    let all = session(12, 1_500);
    assert_eq!(rig.chat(&all).await.status, 413);
    let before = rig.proxy.trace().sessions()[0].requests[0].limit;
    assert!(before < Tokens(20_000), "{before:?}");
    let mut more = all.clone();
    more.extend(work(12, 300));
    assert_eq!(rig.chat(&more).await.status, 200);
    let record = rig.proxy.trace().sessions()[0].requests[1].clone();
    assert!(record.limit > Tokens(40_000), "{record:?}");
}

#[tokio::test]
async fn another_model_has_another_window() {
    let message = "This model's maximum context length is 8000 tokens. However, you requested \
        60000 tokens (20000 in the messages, 40000 in the completion).";
    let rig = Rig::new(
        refusals(vec![refused(400, message)]),
        Set { window: Some(64_000), ..Set::default() },
    )
    .await;
    let mut all = session(12, 1_500);
    assert_eq!(rig.chat(&all).await.status, 200);
    all.extend(work(12, 300));
    let body = |model: &str| json!({ "model": model, "messages": all });
    let path = "/v1/chat/completions";
    assert_eq!(rig.post(path, &body("m")).await.status, 200);
    assert_eq!(rig.post(path, &body("other")).await.status, 200);
    let limits: Vec<Tokens> = rig.records().await.iter().map(|record| record.limit).collect();
    assert!(limits[1] < Tokens(8_000) && limits[2] > Tokens(40_000), "{limits:?}");
}

#[tokio::test]
async fn the_answer_reserve_does_not_count_as_prompt() {
    let message = "This model's maximum context length is 32000 tokens. However, you requested \
        99000 tokens. Please reduce the length of the messages or completion.";
    let rig = Rig::new(
        refusals(vec![refused(400, message)]),
        Set { window: Some(64_000), ..Set::default() },
    )
    .await;
    assert_eq!(rig.chat(&session(24, 1_000)).await.status, 200);
    // The window is right: the excess came from the requested answer length, not from the prompt.
    let record = rig.records().await.remove(0);
    let sent = rig.last().prompt.tokens() as u64;
    assert!(record.sent_tokens.get() < sent * 5 / 4, "{record:?} {sent}");
}

#[tokio::test]
async fn a_window_too_small_for_the_tools_is_refused_by_the_provider() {
    let message = "This model's maximum context length is 8000 tokens. However, your messages \
        resulted in 20000 tokens.";
    let rig = Rig::new(
        refusals(vec![refused(400, message), refused(400, message)]),
        Set { window: Some(64_000), ..Set::default() },
    )
    .await;
    let tool = |n: usize| {
        json!({ "type": "function", "function": { "name": format!("f{n}"),
        "description": "words of a tool ".repeat(200), "parameters": { "type": "object" } } })
    };
    let tools: Vec<Value> = (0..20).map(tool).collect();
    let body = json!({ "model": "m", "messages": session(2, 200), "tools": tools });
    let path = "/v1/chat/completions";
    assert_eq!(rig.post(path, &body).await.status, 400);
    let asked = rig.provider.count();
    let statuses = [rig.post(path, &body).await.status, rig.post(path, &body).await.status];
    assert!(rig.provider.count() > asked, "{statuses:?}");
    assert_eq!(statuses[1], 200);
}

#[tokio::test]
async fn a_failing_engine_still_yields_a_request_that_fits() {
    let message = "prompt is too long: 30000 tokens > 8000 maximum";
    let set = Set { window: Some(64_000), engine: Some("obedient"), ..Set::default() };
    let rig = Rig::new(refusals(vec![refused(400, message)]), set).await;
    let mut all = talk(40, 600);
    all.push(json!({ "role": "assistant", "content": "The last one." }));
    all.push(user("fail"));
    assert_eq!(rig.chat(&all).await.status, 200);
    let warnings = rig.warnings.lock().unwrap().clone();
    assert!(warnings.iter().any(|warning| warning.contains("the engine failed")), "{warnings:?}");
    let tokens = rig.last().prompt.tokens();
    assert!(tokens < 8_000, "{tokens} tokens");
    assert_eq!(rig.provider.count(), 2);
}

#[tokio::test]
async fn one_implausible_limit_affects_neither_conversation_nor_recovery() {
    for absurd in [
        "This model's maximum context length is 1 tokens. However, your messages resulted in \
         3000 tokens.",
        "This model's maximum context length is 1000000000 tokens. However, your messages \
         resulted in 3000 tokens.",
        "This model's maximum context length is 99999999999999999999999 tokens. However, your \
         messages resulted in 18446744073709551615 tokens.",
    ] {
        let provider = FakeProvider::builder()
            .window(Tokens(9_000))
            .script([refused(400, absurd)])
            .respond(|_| Step::text("done"));
        let set = Set { window: Some(64_000), ..Set::default() };
        let rig = Rig::new(provider.start().unwrap(), set).await;
        let mut all = vec![user("Read the files.")];
        rig.chat(&all).await;
        let asked = rig.provider.count();
        assert_eq!(rig.chat(&all).await.status, 200, "{absurd}");
        assert_eq!(rig.provider.count(), asked + 1, "it passed unchanged: {absurd}");
        all.extend((0..20).flat_map(|n| work(n, 1_500)));
        assert_eq!(rig.chat(&all).await.status, 200, "{absurd}");
        assert!(rig.last().prompt.tokens() > 2_000, "as much as fits: {absurd}");
        let warnings = rig.warnings.lock().unwrap().clone();
        assert!(!warnings.iter().any(|text| text.contains("engine failed")), "{warnings:?}");
    }
}

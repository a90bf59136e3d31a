//! How answers end: complete, or as an error with a hint.

use std::sync::Arc;

use ctx_core::{ChatModel, ChatStop, Delta, ErrorKind, Message, Role, Usage};
use ctx_model::{Api, Client, Endpoint, HttpModel, ModelFacts};
use ctx_testkit::provider::{
    Answer, Call, Cut, Failure, FailureKind, Finish, Moment, Outcome, Report, RetryAfter, Step,
};
use serde_json::{Value, json};

use crate::converse::{asks, call, converse, error, full, hello, model, model_of, start};
use crate::server::facts;

#[tokio::test]
async fn a_cut_anywhere_before_the_end_is_a_retryable_error() {
    for api in Api::ALL {
        for at in 0..16 {
            for cut in [Cut::AfterEvents(at), Cut::InEvent(at)] {
                let fake = start([Step::answer(full()).cut(cut)]);
                match converse(&model(&fake, api), hello()).await.0 {
                    // The answer was complete before the cut.
                    Ok(reply) => assert_eq!(reply.message.tool_calls().count(), 2, "{api} {cut:?}"),
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Upstream, "{api} {cut:?} {error}");
                        assert!(error.is_retryable(), "{api} {cut:?} {error}");
                    }
                }
            }
        }
        for early in [Cut::BeforeHeaders, Cut::AfterHeaders, Cut::AfterEvents(4)] {
            let fake = start([Step::answer(full()).cut(early)]);
            assert!(error(&model(&fake, api), hello()).await.is_retryable(), "{api} {early:?}");
        }
    }
}

#[tokio::test]
async fn invalid_arguments_are_an_error_and_slight_damage_is_repaired() {
    for api in Api::ALL {
        let with = |arguments: &str| {
            let calls = vec![call("read", Value::String(arguments.to_owned()))];
            Step::answer(Answer { calls, ..Answer::default() })
        };
        for (arguments, expected) in [
            (r#"{"path": "a", }"#, Some(r#"{"path":"a"}"#)),
            (r"{path: 'a'}", Some(r#"{"path":"a"}"#)),
            (r#"{"path": "a"#, None),
            (r#"{"path": "a"}}"#, None),
            ("the file a", None),
        ] {
            let fake = start([with(arguments)]);
            let (reply, _) = converse(&model(&fake, api), hello()).await;
            match expected {
                Some(expected) => {
                    let reply = reply.unwrap();
                    let found = reply.message.tool_calls().next().unwrap().arguments.clone();
                    let compact: Value = serde_json::from_str(found.as_str()).unwrap();
                    assert_eq!(compact.to_string(), expected, "{api} {arguments}");
                }
                None => {
                    let error = reply.unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::Upstream, "{api} {arguments}");
                    assert!(error.is_retryable() && error.may_be_billed());
                }
            }
        }
    }
}

#[tokio::test]
async fn two_calls_with_one_id_get_different_ids() {
    let piece = |index: u64, arguments: &str| {
        let function = json!({ "name": "read", "arguments": arguments });
        let call =
            json!({ "index": index, "id": "same", "type": "function", "function": function });
        json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [call] } }] })
    };
    let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "tool_calls" }] });
    let events = [piece(0, "{\"path\":\"a\"}"), piece(1, "{\"path\":\"b\"}"), end];
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let fake = start([Step::raw(200, "text/event-stream", body + "data: [DONE]\n\n")]);
    let reply = converse(&model(&fake, Api::OpenAiCompletions), hello()).await.0.unwrap();
    let calls: Vec<_> = reply.message.tool_calls().collect();
    let arguments: Vec<_> = calls.iter().map(|call| call.arguments.as_str()).collect();
    assert_eq!(arguments, [r#"{"path":"a"}"#, r#"{"path":"b"}"#]);
    assert!(&*calls[0].id == "same" && calls[1].id != calls[0].id, "{calls:?}");
}

#[tokio::test]
async fn an_html_page_is_shown_as_one_line_and_a_missing_key_by_its_name() {
    let page = format!(
        "<!DOCTYPE html>\n<html><head><title>502 Bad\nGateway</title></head><body>{}</body></html>",
        "<p>try later</p>".repeat(100)
    );
    let fake = start([Step::raw(502, "text/html", page)]);
    let text = error(&model(&fake, Api::OpenAiCompletions), hello()).await.to_string();
    assert!(text.contains("an HTML page: 502 Bad Gateway"), "{text}");
    assert!(!text.contains('<') && text.len() < 300, "{text}");
    let fake = start([Step::raw(401, "application/json", "{}")]);
    let facts = ModelFacts { name: "openai/some".to_owned(), ..facts() };
    let endpoint = Endpoint::new(&fake.url(), Api::OpenAiCompletions).unwrap();
    let client = Arc::new(Client::default());
    let error = error(&HttpModel::new(facts, endpoint, client), hello()).await;
    let hint = error.hint_text().unwrap();
    assert!(hint.contains("export OPENAI_API_KEY"), "{hint}");
    assert!(hint.contains("models.providers.openai.apiKey"), "{hint}");
}

#[tokio::test]
async fn the_end_of_an_answer_means_the_same_everywhere() {
    for api in Api::ALL {
        let answer = |text: &str, finish, calls: Vec<Call>| {
            Step::answer(Answer {
                text: text.to_owned(),
                finish: Some(finish),
                calls,
                ..Answer::default()
            })
        };
        let cut = || vec![call("read", Value::String(r#"{"path": "a"#.to_owned()))];
        let fake = start([answer("so far", Finish::Length, Vec::new())]);
        let reply = converse(&model(&fake, api), hello()).await.0.unwrap();
        assert_eq!(reply.stop, ChatStop::Length, "{api}");
        assert_eq!(reply.message.meta.stop_reason.as_deref(), Some("length"));
        for (step, kind, again) in [
            (answer("x", Finish::ContentFilter, Vec::new()), ErrorKind::Capability, false),
            (answer("", Finish::Stop, Vec::new()), ErrorKind::Upstream, true),
            (answer("  ", Finish::Stop, Vec::new()), ErrorKind::Upstream, true),
            // A retry would be cut at the same place.
            (answer("x", Finish::Length, cut()), ErrorKind::Upstream, false),
        ] {
            let fake = start([step.clone()]);
            let error = error(&model(&fake, api), hello()).await;
            assert_eq!((error.kind(), error.is_retryable()), (kind, again), "{api} {step:?}");
            assert!(error.hint_text().is_some() && error.may_be_billed(), "{api} {error:?}");
        }
        let thought = Answer {
            thinking: "and so on".to_owned(),
            finish: Some(Finish::Length),
            ..Answer::default()
        };
        let fake = start([Step::answer(thought)]);
        let error = error(&model(&fake, api), hello()).await;
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Upstream, false), "{api}");
    }
}

#[tokio::test]
async fn an_overflow_is_recognised_in_every_form() {
    for api in Api::ALL {
        let used = |prompt: u64, text: &str, finish| {
            let usage = Usage { input: prompt, output: 1, ..Usage::default() };
            Step::answer(Answer {
                text: text.to_owned(),
                usage: Report::Given(usage),
                finish: Some(finish),
                ..Answer::default()
            })
        };
        for step in [
            Step::overflow(),
            Step::error(Failure::new(FailureKind::Overflow).in_stream(3)),
            used(33_000, "x", Finish::Stop),
            used(31_900, "", Finish::Length),
        ] {
            let fake = start([step.clone()]);
            let error = error(&model(&fake, api), hello()).await;
            assert_eq!(error.kind(), ErrorKind::Overflow, "{api} {step:?}: {error}");
            assert!(!error.is_retryable());
        }
        if api != Api::OpenAiResponses {
            let fake = start([used(10, "", Finish::WindowFull)]);
            assert_eq!(error(&model(&fake, api), hello()).await.kind(), ErrorKind::Overflow);
        }
        // If the window is only assumed, a larger count means nothing.
        let fake = start([used(33_000, "x", Finish::Stop)]);
        let guessed = model_of(&fake, api, ModelFacts { window_is_assumed: true, ..facts() });
        assert!(converse(&guessed, hello()).await.0.is_ok(), "{api}");
        assert_eq!(guessed.card().window, Some(facts().window), "the assumed window is reported");
    }
}

#[tokio::test]
async fn failures_say_whether_and_when_to_try_again() {
    for api in Api::ALL {
        let slow = Failure::new(FailureKind::RateLimited).retry_after(RetryAfter::Seconds(7));
        let fake = start([Step::error(slow)]);
        let error = error(&model(&fake, api), hello()).await;
        assert_eq!(error.wait().map(|wait| wait.as_secs()), Some(7), "{api}");
        for (kind, again) in [
            (FailureKind::Overloaded, true),
            (FailureKind::ServerError, true),
            (FailureKind::Unauthorized, false),
        ] {
            let fake = start([Step::error(kind)]);
            assert_eq!(self::error(&model(&fake, api), hello()).await.is_retryable(), again);
        }
    }
}

#[tokio::test]
async fn dropping_the_answer_cancels_the_request() {
    for api in Api::ALL {
        let fake = start([Step::answer(full()).held_at(Moment::AfterEvents(3))]);
        let model = model(&fake, api);
        let mut ignore = |_: Delta<'_>| {};
        {
            let answer = model.answer(hello(), &mut ignore);
            tokio::select! {
                biased;
                _ = answer => panic!("the answer ended before its release"),
                () = fake.arrived(1) => {}
            }
        }
        fake.release_all();
        assert_ne!(fake.ended(1).await, Outcome::Open, "{api}");
    }
}

#[tokio::test]
async fn fields_that_a_server_refuses_are_omitted_in_a_conversation() {
    let refuse = |text: &str| {
        Step::raw(400, "application/json", json!({ "error": { "message": text } }).to_string())
    };
    let fake = start([
        refuse("Unrecognized request argument supplied: prompt_cache_key"),
        refuse("Conversation roles must alternate user/assistant/user/assistant/..."),
        Step::text("yes"),
    ]);
    let two = || asks([Message::text(Role::User, "one"), Message::text(Role::User, "two")]);
    let model = model(&fake, Api::OpenAiCompletions);
    assert!(converse(&model, two()).await.0.is_ok());
    let asked = fake.requests();
    assert_eq!(asked[0].json["messages"].as_array().unwrap().len(), 3);
    assert_eq!(asked[2].json["messages"].as_array().unwrap().len(), 2);
    assert!(asked[1].json.get("prompt_cache_key").is_none());

    let fake = start([refuse("cache_control: Extra inputs are not permitted"), Step::text("yes")]);
    let model = self::model(&fake, Api::AnthropicMessages);
    assert!(converse(&model, two()).await.0.is_ok());
    assert!(!fake.requests()[1].json.to_string().contains("cache_control"));

    let fake = start([
        refuse("Your organization must be verified to generate reasoning summaries."),
        refuse("Encrypted content is not supported with this model."),
        Step::text("yes"),
    ]);
    let thinks = ModelFacts { reasoning: true, ..facts() };
    let model = model_of(&fake, Api::OpenAiResponses, thinks);
    assert!(converse(&model, two()).await.0.is_ok());
    let asked = fake.requests();
    assert_eq!(asked[0].json["include"], json!(["reasoning.encrypted_content"]));
    assert_eq!(asked[0].json["reasoning"], json!({ "summary": "auto" }));
    assert!(asked[2].json.get("include").is_none() && asked[2].json.get("reasoning").is_none());
}

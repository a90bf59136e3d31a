//! Conversations with the scripted provider, over each API.

use std::sync::Arc;

use ctx_core::{
    Block, ChatModel, ChatRequest, ChatStop, Delta, Error, ErrorKind, Message, RawJson, Reply,
    Role, Tokens, ToolOutput, ToolSpec, Usage,
};
use ctx_model::{Api, Client, Endpoint, HttpModel, KeyRef, ModelFacts};
use ctx_testkit::provider::{
    Answer, Call, Cut, Failure, FailureKind, FakeProvider, Finish, Moment, Report, RetryAfter, Step,
};
use serde_json::{Value, json};

use crate::server::facts;

pub(crate) fn start(steps: impl IntoIterator<Item = Step>) -> FakeProvider {
    FakeProvider::builder().script(steps).key("sk-fake").start().unwrap()
}

pub(crate) fn model(fake: &FakeProvider, api: Api) -> HttpModel {
    model_of(fake, api, facts())
}

pub(crate) fn model_of(fake: &FakeProvider, api: Api, facts: ModelFacts) -> HttpModel {
    let key = KeyRef::parse("sk-fake").unwrap();
    let endpoint = Endpoint::new(&fake.url(), api).unwrap().with_key(key);
    HttpModel::new(facts, endpoint, Arc::new(Client::default()))
}

/// A model that thinks, so that it is asked for its thoughts.
fn thinker(fake: &FakeProvider, api: Api) -> HttpModel {
    model_of(fake, api, ModelFacts { reasoning: true, ..facts() })
}

pub(crate) fn asks(messages: impl IntoIterator<Item = Message>) -> ChatRequest {
    let parameters = r#"{"type":"object","properties":{"path":{"type":"string"}}}"#;
    ChatRequest {
        system: Some("You are careful.".to_owned()),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: vec![ToolSpec {
            name: "read".to_owned(),
            description: "Reads a file.".to_owned(),
            parameters: RawJson::from_text(parameters),
        }],
        max_tokens: Some(Tokens(500)),
        session_id: Some("session-1".to_owned()),
    }
}

pub(crate) fn hello() -> ChatRequest {
    asks([Message::text(Role::User, "hello")])
}

/// The answer, and what was heard of it on the way.
pub(crate) async fn converse(
    model: &HttpModel,
    request: ChatRequest,
) -> (Result<Reply, Error>, Vec<(char, String)>) {
    let mut heard: Vec<(char, String)> = Vec::new();
    let mut listen = |delta: Delta<'_>| {
        let (kind, text) = match delta {
            Delta::Text(text) => ('t', text),
            Delta::Thinking(text) => ('h', text),
            Delta::Call(name) => ('c', name),
        };
        match heard.last_mut().filter(|(last, _)| *last == kind && kind != 'c') {
            Some((_, so_far)) => so_far.push_str(text),
            None => heard.push((kind, text.to_owned())),
        }
    };
    let reply = model.answer(request, &mut listen).await;
    (reply, heard)
}

async fn error(model: &HttpModel, request: ChatRequest) -> Error {
    converse(model, request).await.0.unwrap_err()
}

fn call(name: &str, arguments: Value) -> Call {
    Call { name: name.to_owned(), arguments }
}

fn full() -> Answer {
    Answer {
        thinking: "The user wants both files, 🦀 first.".to_owned(),
        text: "I read them.".to_owned(),
        calls: vec![call("read", json!({ "path": "a/🦀.rs", "n": 1.5 })), call("read", json!({}))],
        ..Answer::default()
    }
}

#[tokio::test]
async fn an_answer_comes_in_pieces_and_is_stored_whole() {
    for api in Api::ALL {
        let step = || Step::answer(full());
        let fake = start([step(), step().write_bytes(3), step().crlf(), step().crlf()]);
        let model = thinker(&fake, api);
        for _ in 0..4 {
            let (reply, heard) = converse(&model, hello()).await;
            let reply = reply.unwrap();
            assert_eq!(reply.stop, ChatStop::ToolUse, "{api}");
            let (thinking, text) = (full().thinking, full().text);
            let read = || ('c', "read".to_owned());
            assert_eq!(heard, [('h', thinking.clone()), ('t', text.clone()), read(), read()]);
            let message = &reply.message;
            assert_eq!((&message.role, message.plain_text()), (&Role::Assistant, text));
            match &message.blocks[0] {
                Block::Thinking { thinking: kept, signature } => {
                    assert_eq!((kept, signature.is_some()), (&thinking, true), "{api}");
                }
                other => panic!("{api}: {other:?}"),
            }
            let calls: Vec<_> = message.tool_calls().collect();
            let arguments: Vec<_> = calls.iter().map(|call| call.arguments.as_str()).collect();
            assert_eq!(arguments, [r#"{"path":"a/🦀.rs","n":1.5}"#, "{}"], "{api}");
            assert_ne!(calls[0].id, calls[1].id);
            let meta = &message.meta;
            assert_eq!(meta.api.as_deref(), Some(api.name()));
            assert_eq!(meta.provider.as_deref(), Some("test"));
            assert_eq!(meta.model.as_deref(), Some("model-1"));
            assert_eq!(meta.stop_reason.as_deref(), Some("toolUse"));
            assert!(meta.response_id.is_some() && meta.timestamp.is_none(), "{api} {meta:?}");
            assert!(reply.usage().unwrap().output > 0);
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_not_streamed_reads_the_same() {
    for api in Api::ALL {
        let fake = start([Step::answer(full()), Step::answer(full())]);
        let model = thinker(&fake, api);
        let streamed = converse(&model, hello()).await.0.unwrap();
        // The provider's own words for the same answer in one piece, from a server that ignores
        // that a stream was asked for.
        let body = raw_whole(&fake, api).await;
        fake.extend([Step::raw(200, "application/json", body)]);
        let (whole, heard) = converse(&model, hello()).await;
        let whole = whole.unwrap();
        assert_eq!(whole.message.plain_text(), streamed.message.plain_text());
        let arguments = |reply: &Reply| -> Vec<String> {
            let calls = reply.message.tool_calls();
            calls.map(|call| call.arguments.as_str().to_owned()).collect()
        };
        assert_eq!(arguments(&whole), arguments(&streamed), "{api}");
        let kinds: String = heard.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, "htcc", "{api}");
    }
}

async fn raw_whole(fake: &FakeProvider, api: Api) -> String {
    let endpoint = Endpoint::new(&fake.url(), api).unwrap();
    let key = KeyRef::parse("sk-fake").unwrap();
    let (headers, _) = endpoint.clone().with_key(key).headers().unwrap();
    let request = ctx_model::Request {
        method: ctx_model::Method::POST,
        url: endpoint.chat_url(),
        headers,
        body: json!({ "model": "m", "messages": [], "input": [] }).to_string().into(),
    };
    let mut response = Client::default().send(request).await.unwrap();
    String::from_utf8(response.body.read_up_to(1 << 20).await.unwrap()).unwrap()
}

#[tokio::test]
async fn a_tool_loop_goes_on_from_what_was_answered_and_hits_the_cache() {
    for api in Api::ALL {
        let fake = start([Step::answer(full()), Step::text("Both are empty.")]);
        let model = thinker(&fake, api);
        let question = Message::text(Role::User, "what is in them? ".repeat(50));
        let first = converse(&model, asks([question.clone()])).await.0.unwrap();
        let results = first
            .message
            .tool_calls()
            .map(|call| ToolOutput::text(format!("result of {}", call.id)).into_message(call));
        let messages: Vec<_> =
            [question, first.message.clone()].into_iter().chain(results).collect();
        let second = converse(&model, asks(messages)).await.0.unwrap();
        assert_eq!(
            (second.stop, second.message.plain_text().as_str()),
            (ChatStop::End, "Both are empty.")
        );
        assert_eq!(second.message.meta.stop_reason.as_deref(), Some("stop"));
        assert!(second.usage().unwrap().cache_read > 100, "{api} {:?}", second.usage());

        let asked = fake.requests();
        let before = asked[0].json.clone();
        let after = asked[1].json.clone();
        assert_eq!(asked[1].prompt.tools, ["read"]);
        let list = |body: &Value| -> Vec<Value> {
            let key = if api == Api::OpenAiResponses { "input" } else { "messages" };
            body[key].as_array().unwrap().clone()
        };
        let text = after.to_string();
        assert!(text.contains("result of") && text.contains("a/🦀.rs"), "{api} {text}");
        match api {
            Api::AnthropicMessages => {
                let mark = json!({ "type": "ephemeral" });
                assert_eq!(after["system"][0]["cache_control"], mark);
                assert_eq!(after["tools"][0]["cache_control"], mark);
                let marked = |message: &Value| {
                    let blocks = message["content"].as_array().unwrap();
                    blocks.last().unwrap()["cache_control"] == mark
                };
                let marks: Vec<_> = list(&after).iter().map(marked).collect();
                assert_eq!(
                    marks,
                    [true, false, true],
                    "where it was written, and where it goes on"
                );
                assert!(text.matches("cache_control").count() <= 4, "the API takes no more");
                // The signature came back, so the reasoning goes back.
                assert_eq!(list(&after)[1]["content"][0]["signature"], "fake");
            }
            _ => {
                assert_eq!(after["prompt_cache_key"], "session-1");
                assert_eq!(list(&before)[..], list(&after)[..list(&before).len()], "{api}");
                let thought = match api {
                    Api::OpenAiResponses => &list(&after)[1]["encrypted_content"],
                    _ => &list(&after)[2]["reasoning_content"],
                };
                assert!(thought.is_string(), "{api} {text}");
            }
        }
        assert_eq!(after["tools"].as_array().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_cut_anywhere_before_the_end_is_an_error_that_may_pass() {
    for api in Api::ALL {
        for at in 0..16 {
            for cut in [Cut::AfterEvents(at), Cut::InEvent(at)] {
                let fake = start([Step::answer(full()).cut(cut)]);
                match converse(&model(&fake, api), hello()).await.0 {
                    // All of it was there before the cut.
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
async fn arguments_that_are_no_json_are_an_error_and_slight_damage_is_mended() {
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
            // The next try would be cut at the same place.
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
async fn an_overflow_is_found_however_it_is_said() {
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
        // Of a window that nobody gave, a count above it says nothing.
        let fake = start([used(33_000, "x", Finish::Stop)]);
        let guessed = model_of(&fake, api, ModelFacts { window_is_assumed: true, ..facts() });
        assert!(converse(&guessed, hello()).await.0.is_ok(), "{api}");
        assert_eq!(guessed.card().window, None);
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
async fn dropping_the_answer_gives_the_request_up() {
    for api in Api::ALL {
        let fake = start([Step::answer(full()).held_at(Moment::AfterEvents(3))]);
        let model = model(&fake, api);
        let mut ignore = |_: Delta<'_>| {};
        {
            let answer = model.answer(hello(), &mut ignore);
            tokio::select! {
                biased;
                _ = answer => panic!("it is held"),
                () = fake.arrived(1) => {}
            }
        }
        fake.release_all();
        assert_ne!(fake.ended(1).await, ctx_testkit::provider::Outcome::Open, "{api}");
    }
}

#[tokio::test]
async fn what_a_conversation_asks_for_that_a_server_does_not_take_is_left_out() {
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

//! Conversations with the scripted provider, for each API.

use std::sync::Arc;

use ctx_core::{
    Block, ChatModel, ChatRequest, ChatStop, Delta, Error, Message, RawJson, Reply, Role, Tokens,
    ToolOutput, ToolSpec,
};
use ctx_model::{Api, Client, Endpoint, HttpModel, KeyRef, ModelFacts};
use ctx_testkit::provider::{Answer, Call, FakeProvider, Step};
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
    // One per test: setting up takes longer than answering.
    thread_local!(static CLIENT: Arc<Client> = Arc::default());
    HttpModel::new(facts, endpoint, CLIENT.with(Arc::clone))
}

/// A model that thinks, so that its reasoning is requested.
fn thinker(fake: &FakeProvider, api: Api) -> HttpModel {
    model_of(fake, api, ModelFacts { reasoning: true, ..facts() })
}

pub(crate) fn asks(messages: impl IntoIterator<Item = Message>) -> ChatRequest {
    let parameters = r#"{"type":"object","properties":{"path":{"type":"string"}}}"#;
    ChatRequest {
        system: Some("You are careful.".to_owned()),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: Arc::new([ToolSpec {
            name: "read".to_owned(),
            description: "Reads a file.".to_owned(),
            parameters: RawJson::from_text(parameters),
        }]),
        max_tokens: Some(Tokens(500)),
        session_id: Some("session-1".to_owned()),
        thinking: None,
    }
}

pub(crate) fn hello() -> ChatRequest {
    asks([Message::text(Role::User, "hello")])
}

/// Returns the answer and the events received on the way.
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

pub(crate) async fn error(model: &HttpModel, request: ChatRequest) -> Error {
    converse(model, request).await.0.unwrap_err()
}

pub(crate) fn call(name: &str, arguments: Value) -> Call {
    Call { name: name.to_owned(), arguments }
}

pub(crate) fn full() -> Answer {
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
            assert!(reply.message.meta.usage.unwrap().output > 0);
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_not_streamed_reads_the_same() {
    for api in Api::ALL {
        let fake = start([Step::answer(full()), Step::answer(full())]);
        let model = thinker(&fake, api);
        let streamed = converse(&model, hello()).await.0.unwrap();
        // The same answer as one body, from a server that ignores the request for a stream.
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
async fn a_tool_loop_continues_from_the_answer_and_hits_the_cache() {
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
        let usage = second.message.meta.usage.unwrap();
        assert!(usage.cache_read > 100, "{api} {usage:?}");

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
                    "where the cache was written, and where the next request reads it"
                );
                assert!(text.matches("cache_control").count() <= 4, "the API accepts no more");
                // The signature was received, so the reasoning is sent back.
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

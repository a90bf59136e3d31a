//! Vectors from OpenAI-compatible servers and from Ollama.

use std::sync::Arc;

use ctx_core::{Embedder, ErrorKind};
use ctx_model::{Api, Client, EmbedApi, HttpEmbedder};
use serde_json::{Value, json};

use crate::server::{Server, Step, endpoint, json as json_response};

fn embedder(server: &Server, api: EmbedApi) -> HttpEmbedder {
    let endpoint = endpoint(server, Api::OpenAiCompletions);
    HttpEmbedder::new("test", "embed-1", 2, api, endpoint, Arc::new(Client::default())).unwrap()
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|t| (*t).to_owned()).collect()
}

#[tokio::test]
async fn vectors_come_back_in_the_order_of_the_texts() {
    let body = json!({ "data": [
        { "index": 1, "embedding": [3, 4.5] },
        { "index": 0, "embedding": [-1, 2e-3] },
    ] });
    let server = Server::with(json_response(200, &body.to_string()));
    let embedder = embedder(&server, EmbedApi::OpenAi);
    let vectors = embedder.embed(&texts(&["a", ""])).await.unwrap();
    assert_eq!(vectors, [vec![-1.0, 0.002], vec![3.0, 4.5]]);
    assert_eq!((embedder.name(), embedder.dimensions()), ("test/embed-1#2", 2));
    let seen = &server.seen()[0];
    assert_eq!(seen.line, "POST /v1/embeddings HTTP/1.1");
    assert_eq!(
        seen.json(),
        json!({ "model": "embed-1", "input": ["a", " "], "encoding_format": "float" })
    );
}

#[tokio::test]
async fn ollama_is_asked_at_its_own_address_and_not_to_shorten() {
    let body = json!({ "embeddings": [[1, 2], [3, 4]] }).to_string();
    let server = Server::with(json_response(200, &body));
    let embedder = embedder(&server, EmbedApi::Ollama);
    assert_eq!(
        embedder.embed(&texts(&["a", "b"])).await.unwrap(),
        [vec![1.0, 2.0], vec![3.0, 4.0]]
    );
    let seen = &server.seen()[0];
    assert_eq!(seen.line, "POST /api/embed HTTP/1.1");
    assert_eq!(seen.json(), json!({ "model": "embed-1", "input": ["a", "b"], "truncate": false }));
}

#[tokio::test]
async fn many_texts_are_sent_in_batches() {
    let reply = |count: usize, first: usize| {
        let data: Vec<Value> =
            (0..count).map(|at| json!({ "index": at, "embedding": [first + at, 0] })).collect();
        vec![Step::Send(json_response(200, &json!({ "data": data }).to_string()).into())]
    };
    let server = Server::start(vec![reply(64, 0), reply(64, 64), reply(22, 128)]);
    let all: Vec<String> = (0..150).map(|n| n.to_string()).collect();
    let vectors = embedder(&server, EmbedApi::OpenAi).embed(&all).await.unwrap();
    let firsts: Vec<f32> = vectors.iter().map(|v| v[0]).collect();
    assert_eq!(firsts, (0..150).map(|n| n as f32).collect::<Vec<_>>());
    assert_eq!(server.seen().len(), 3);
    assert_eq!(embedder(&server, EmbedApi::OpenAi).embed(&[]).await.unwrap().len(), 0);
    assert_eq!(server.seen().len(), 3, "no texts, no request");
}

#[tokio::test]
async fn answers_that_do_not_match_the_request_are_refused() {
    use ErrorKind::{Corrupt, Overflow, Upstream};
    let item = |index: u64, vector: Value| json!({ "index": index, "embedding": vector });
    for (status, body, kind, words) in [
        (200, json!({ "data": [item(0, json!([1, 2]))] }), Corrupt, "lacks"),
        (
            200,
            json!({ "data": [item(0, json!([1, 2])), item(0, json!([1, 2]))] }),
            Corrupt,
            "the answer has a surplus or duplicate vector",
        ),
        (
            200,
            json!({ "data": [item(0, json!([1, 2])), item(9, json!([1, 2]))] }),
            Corrupt,
            "surplus or duplicate vector",
        ),
        (
            200,
            json!({ "data": [item(0, json!([1, 2, 3])), item(1, json!([1, 2]))] }),
            Corrupt,
            "model to 3",
        ),
        (
            200,
            json!({ "data": [item(0, json!([1, null])), item(1, json!([1, 2]))] }),
            Corrupt,
            "not a number",
        ),
        (
            200,
            json!({ "data": [item(0, json!([1, 1e300])), item(1, json!([1, 2]))] }),
            Corrupt,
            "not a number",
        ),
        (
            200,
            json!({ "data": [item(0, json!("AAAA")), item(1, json!([1, 2]))] }),
            Corrupt,
            "number of dimensions",
        ),
        (200, json!({}), Corrupt, "no vectors"),
        (200, json!({ "error": { "message": "down", "code": 503 } }), Upstream, "down"),
        (
            400,
            json!({ "error": "the input length exceeds the context length" }),
            Overflow,
            "too long",
        ),
        (
            400,
            json!({ "error": { "message": "This model's maximum context length is 8192 tokens, however you requested 9000 tokens (9000 in your prompt; 0 for the completion)." } }),
            Overflow,
            "limit: 8192",
        ),
    ] {
        let server = Server::with(json_response(status, &body.to_string()));
        let error =
            embedder(&server, EmbedApi::OpenAi).embed(&texts(&["a", "b"])).await.unwrap_err();
        let all = format!("{error} {:?}", error.hint_text());
        assert!(error.kind() == kind && all.contains(words), "{body}: {all}");
        assert!(error.hint_text().is_some(), "{all}");
    }
    let server = Server::with(json_response(200, &"[".repeat(5_000_000)));
    let error = embedder(&server, EmbedApi::OpenAi).embed(&texts(&["a"])).await.unwrap_err();
    assert_eq!(error.kind(), Upstream);
}

//! No formatted value shows a key.

use std::error::Error as _;
use std::sync::Arc;

use ctx_core::{Error, Summarizer, SummaryModels};
use ctx_model::{
    Api, Client, EmbedApi, HttpEmbedder, HttpModel, KeyRef, Provider, TokioTimer, connect,
};
use serde_json::json;

use crate::server::{
    KEY, Server, endpoint, facts, json as json_response, request, response, stream,
};

/// Returns the full text of an error, including its causes.
fn all_of(error: &Error) -> String {
    let mut all =
        format!("{error} {error:?} {error:#?} {:?} {:?}", error.hint_text(), error.context());
    let mut source = error.source();
    while let Some(cause) = source {
        all += &format!(" {cause} {cause:?} {cause:#?}");
        source = cause.source();
    }
    all
}

#[tokio::test]
async fn a_key_repeated_by_a_provider_is_not_printed() {
    let header = "sk-header-that-is-secret";
    let message = format!("Incorrect API key provided: {KEY} and {header}");
    let echo = json!({ "error": { "message": message, "code": 401 } }).to_string();
    for reply in [
        json_response(401, &echo),
        json_response(500, &echo),
        json_response(200, &echo),
        response(400, &format!("x-request-id: {KEY}\r\n"), &message),
        stream(&format!("data: {echo}\n\n")),
        json_response(200, &format!("broken {message}")),
        response(307, &format!("location: http://user:{KEY}@example.org/?key={KEY}\r\n"), ""),
    ] {
        let server = Server::with(reply.clone());
        let endpoint = endpoint(&server, Api::OpenAiCompletions)
            .with_header("x-gateway-key", KeyRef::parse(header).unwrap());
        let client = Arc::new(Client::default());
        let model = HttpModel::new(facts(), endpoint.clone(), client.clone());
        let error = model.ask(&request()).await.unwrap_err();
        let embedder =
            HttpEmbedder::new("test", "e", 2, EmbedApi::OpenAi, endpoint.clone(), client).unwrap();
        let texts = ["a".to_owned()];
        let failed = ctx_core::Embedder::embed(&embedder, &texts).await.unwrap_err();
        let models = SummaryModels { chain: vec![], timer: Arc::new(TokioTimer::default()) };
        let all = format!(
            "{} {} {model:?} {model:#?} {embedder:?} {endpoint:?} {models:?} {}",
            all_of(&error),
            all_of(&failed),
            model.name()
        );
        assert_eq!(server.seen()[0].header("x-gateway-key"), Some(header), "it was sent");
        for secret in [KEY, header] {
            assert!(!all.contains(secret), "{reply}\n{all}");
        }
    }
}

#[tokio::test]
async fn secrets_of_the_url_are_hidden_in_provider_messages() {
    let message = "no such route: http://sk-user-name:pass%20word-1@gate/v1?key=sk-in-query \
        asked by sk-user-name with pass word-1 in 2024-10-21";
    let server = Server::with(json_response(400, message));
    let url = server.url().replace("http://", "http://sk-user-name:pass%20word-1@")
        + "/v1?key=sk-in-query&api-version=2024-10-21";
    let endpoint = ctx_model::Endpoint::new(&url, Api::OpenAiCompletions).unwrap();
    let model = HttpModel::new(facts(), endpoint, Arc::default());
    let all = all_of(&model.ask(&request()).await.unwrap_err());
    assert!(all.contains("no such route") && all.contains("2024-10-21"), "{all}");
    for secret in ["sk-user-name", "pass%20word-1", "pass word-1", "sk-in-query"] {
        assert!(!all.contains(secret), "{secret} in {all}");
    }
}

#[test]
fn configurations_hide_their_secrets() {
    let key = || KeyRef::parse(KEY).unwrap();
    let provider = Provider {
        id: "mine".to_owned(),
        base_url: Some(format!("http://user:{KEY}@127.0.0.1:9/v1?key={KEY}")),
        api_key: Some(key()),
        headers: vec![("x-key".to_owned(), key())],
        ..Provider::default()
    };
    let model = connect("mine/m", std::slice::from_ref(&provider), &Arc::default()).unwrap();
    let bad = Provider { headers: vec![("bad name".to_owned(), key())], ..provider.clone() };
    let error = connect("mine/m", &[bad], &Arc::default()).unwrap_err();
    let all = format!("{provider:?} {provider:#?} {model:?} {model:#?} {}", all_of(&error));
    assert!(!all.contains(KEY), "{all}");
}

//! Conversations that OpenAI stores, with a small server in its place.

use axum::http::Uri;
use axum::response::IntoResponse;
use ctx_testkit::provider::FakeProvider;

use super::*;

/// The bodies that arrived.
type Arrived = Arc<Mutex<Vec<Value>>>;

/// Starts a server that refuses requests with a conversation from the third response on.
async fn server() -> (String, Arrived) {
    let arrived = Arrived::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let seen = arrived.clone();
    let respond = async move |uri: Uri, body: Bytes| {
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        if uri.path().contains("/conversations") {
            let created = json!({ "id": "conv_1", "object": "conversation" });
            return created.to_string().into_response();
        }
        let count = {
            let mut all = seen.lock().unwrap();
            all.push(body.clone());
            all.len()
        };
        if count > 2 && !body["conversation"].is_null() {
            let error = json!({ "error": { "code": "context_length_exceeded", "message": "x" } });
            return (StatusCode::BAD_REQUEST, error.to_string()).into_response();
        }
        let text = json!({ "type": "output_text", "text": format!("answer {count}") });
        let item = json!({ "type": "message", "id": format!("m{count}"), "role": "assistant",
            "content": [text] });
        let answer = json!({ "id": format!("resp_{count}"), "object": "response",
            "status": "completed", "output": [item] });
        answer.to_string().into_response()
    };
    let routes = Router::new().fallback(respond);
    tokio::spawn(async { axum::serve(listener, routes).await });
    (url, arrived)
}

async fn rig(home: TempDir, url: &str) -> Rig {
    let set = Set { upstream: Some(url.to_owned()), ..Set::default() };
    Rig::at(home, FakeProvider::builder().start().unwrap(), set).await
}

fn turn(n: usize, conversation: &Value) -> Value {
    let text = format!("Rule {n}: never delete file{n}.txt. ") + &"Read on. ".repeat(700);
    json!({ "model": "m", "input": [user(text)], "conversation": conversation })
}

#[tokio::test]
async fn the_history_of_a_conversation_is_sent_when_the_provider_refuses_it() {
    let (url, arrived) = server().await;
    let mut rig = rig(TempDir::new().unwrap(), &url).await;
    let begin = json!({ "items": [user("Rule: never touch begin.txt.")] });
    let got = rig.post("/v1/conversations", &begin).await;
    assert_eq!(got.json()["id"], "conv_1");
    let more = json!({ "items": [user("Rule: never touch more.txt.")] });
    assert_eq!(rig.post("/v1/conversations/conv_1/items", &more).await.status, 200);
    let forms = [json!("conv_1"), json!({ "id": "conv_1" })];
    for (n, form) in forms.iter().enumerate() {
        let body = turn(n, form);
        assert_eq!(rig.post("/v1/responses", &body).await.status, 200);
        assert_eq!(arrived.lock().unwrap().last(), Some(&body));
    }
    let (home, _) = rig.end().await;
    rig = self::rig(home, &url).await;
    for n in [2, 3] {
        assert_eq!(rig.post("/v1/responses", &turn(n, &forms[0])).await.status, 200);
        let sent = arrived.lock().unwrap().last().cloned().unwrap();
        assert!(sent["conversation"].is_null(), "{sent}");
        let text = sent["input"].to_string();
        for part in ["begin.txt", "more.txt", "file0.txt", "file1.txt", "Rule 2"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let newest = sent["input"].as_array().unwrap().last().unwrap().to_string();
        assert!(newest.contains(&format!("Rule {n}: never delete file{n}.txt.")), "{newest}");
    }
    // The provider does not know the third turn, so it is not asked for the conversation again.
    assert_eq!(arrived.lock().unwrap().len(), 5);
}

#[tokio::test]
async fn a_conversation_that_ctx_does_not_know_passes_unchanged_with_one_warning() {
    let (url, arrived) = server().await;
    for is_changed in [false, true] {
        let rig = rig(TempDir::new().unwrap(), &url).await;
        if is_changed {
            rig.post("/v1/conversations", &json!({})).await;
            let path = "/v1/conversations/conv_1/items/m1";
            let headers = [("authorization", "Bearer k")];
            assert_eq!(rig.send(Method::DELETE, path, &headers, "").await.status, 200);
        }
        for n in 0..3 {
            let body = turn(n, &json!("conv_1"));
            rig.post("/v1/responses", &body).await;
            assert_eq!(arrived.lock().unwrap().last(), Some(&body), "{is_changed}");
        }
        let warnings = rig.warnings.lock().unwrap().clone();
        assert!(warnings.len() == 1 && warnings[0].contains("unchanged"), "{warnings:?}");
        rig.end().await;
    }
}

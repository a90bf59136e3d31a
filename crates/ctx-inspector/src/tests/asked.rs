//! Invalid API requests.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn unknown_resources_are_a_404_in_json_with_a_hint() {
    let place = Place::new();
    let file = place.transcript("one.jsonl", 3, 3);
    let (api, id) = place.api(&[&file]);
    let session = format!("/api/sessions/{id}");
    for path in [
        "/api".to_owned(),
        "/api/".to_owned(),
        "/api/nothing".to_owned(),
        "/api/sessions/nobody".to_owned(),
        "/api/sessions/..%2F..%2F..%2Fetc%2Fpasswd".to_owned(),
        "/api/sessions/%00".to_owned(),
        "/api/sessions/%ff".to_owned(),
        format!("{session}/requests/0"),
        format!("{session}/requests/4"),
        format!("{session}/requests/-1"),
        format!("{session}/requests/99999999999999999999999"),
        format!("{session}/entries/..%2Fone.jsonl"),
        format!("{session}/entries/%3Cscript%3E"),
        format!("{session}/compactions/replay-0/diff"),
        format!("{session}/compactions/replay-18446744073709551616/diff"),
        format!("{session}/nothing"),
        "/api/memory?q=x".to_owned(),
    ] {
        let (status, body) = api.get(&path).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}: {body}");
        assert_eq!(body["error"]["kind"], "notFound", "{path}");
        assert!(body["error"]["hint"].is_string(), "{path}: {body}");
    }
    let (status, body) = api.ask(Method::DELETE, &session, None).await;
    assert_eq!((status, &body["error"]["kind"]), (StatusCode::NOT_FOUND, &json!("notFound")));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_query_is_refused_with_the_reason() {
    let place = Place::new();
    let file = place.transcript("one.jsonl", 3, 3);
    let (api, id) = place.api(&[&file]);
    for query in ["from=-1", "from=many", "count=1e9"] {
        let path = format!("/api/sessions/{id}/requests/1?{query}");
        let (status, body) = api.get(&path).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{query}: {body}");
        assert_eq!(body["error"]["kind"], "invalidInput");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_or_missing_transcript_is_an_error() {
    let place = Place::new();
    let file = place.dir.path().join("noise.jsonl");
    std::fs::write(&file, b"\x00\xff not a transcript").unwrap();
    let (api, id) = place.api(&[&file]);
    let (status, body) = api.get(&format!("/api/sessions/{id}")).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
    std::fs::remove_file(&file).unwrap();
    let (status, body) = api.get(&format!("/api/sessions/{id}")).await;
    assert!(!status.is_success() && body["error"]["message"].is_string(), "{status} {body}");
}

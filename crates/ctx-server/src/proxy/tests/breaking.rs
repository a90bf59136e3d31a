//! Clients that go away, and answers that are not what they should be.

use ctx_testkit::provider::{
    Cut, Failure, FailureKind, FakeProvider, Moment, Reply, RetryAfter, Step,
};

use super::*;

fn provider(steps: impl IntoIterator<Item = Step>) -> FakeProvider {
    FakeProvider::builder().script(steps).respond(|_| Step::text("done")).start().unwrap()
}

#[tokio::test]
async fn a_summary_is_not_lost_with_the_client_that_had_to_wait_for_it() {
    // A summary is asked for without tools.
    let provider = FakeProvider::builder().respond(|asked| match asked.json["tools"].is_array() {
        true => Step::text("done"),
        false => Step::new(Reply::Summary).held(),
    });
    let config = "{ server: { summaries: 'upstream' } }";
    let rig = Rig::new(provider.start().unwrap(), Set { config, ..Set::default() }).await;
    let tools = json!([{ "type": "function", "function": { "name": "read" } }]);
    let body = json!({ "model": "m", "messages": talk(40, 600), "tools": tools });
    tokio::select! {
        answer = rig.post("/v1/chat/completions", &body) => panic!("nothing was to come: {answer:?}"),
        () = rig.provider.arrived(1) => {}
    }
    rig.provider.release_all();
    assert_eq!(rig.post("/v1/chat/completions", &body).await.status, 200);
    assert!(rig.last().prompt.tokens() < 12_500);
    let records = rig.records().await;
    assert!(records[0].compaction.is_none(), "it was summarised before this request");
}

#[tokio::test]
async fn a_refusal_that_breaks_off_keeps_its_status_and_its_headers() {
    let busy = Failure::new(FailureKind::RateLimited).retry_after(RetryAfter::Seconds(7));
    let rig = Rig::new(provider([Step::error(busy).cut(Cut::AfterHeaders)]), Set::default()).await;
    let url = Url::parse(&format!("{}/v1/chat/completions", rig.url)).unwrap();
    let body = json!({ "model": "m", "messages": [user("hi")] }).to_string();
    let request =
        Request { method: Method::POST, url, headers: HeaderMap::new(), body: body.into() };
    let response = rig.client.send(request).await.unwrap();
    assert_eq!(response.status, 429);
    assert_eq!(response.headers["retry-after"], "7");
}

#[tokio::test]
async fn an_answer_that_is_packed_unasked_is_not_held_back() {
    let body = "x".repeat(64);
    let mut step = Step::raw(200, "text/event-stream", body);
    if let Reply::Raw(raw) = &mut step.reply {
        raw.headers.push(("content-encoding".to_owned(), "gzip".to_owned()));
    }
    let rig = Rig::new(provider([step.stalled_at(Moment::AfterHeaders)]), Set::default()).await;
    let url = Url::parse(&format!("{}/v1/chat/completions", rig.url)).unwrap();
    let body = json!({ "model": "m", "messages": [user("hi")], "stream": true }).to_string();
    let request =
        Request { method: Method::POST, url, headers: HeaderMap::new(), body: body.into() };
    let response = rig.client.send(request).await.unwrap();
    assert_eq!(response.headers["content-encoding"], "gzip");
    assert_eq!(rig.last().header("accept-encoding"), Some("identity"));
}

#[tokio::test]
async fn what_did_not_change_is_no_redirect() {
    let rig = Rig::new(provider([Step::raw(304, "text/plain", "")]), Set::default()).await;
    let got = rig.chat(&[user("hi")]).await;
    assert_eq!(got.status, 304);
}

#[tokio::test]
async fn a_request_without_a_body_waits_for_no_room() {
    let rig = Rig::new(provider([]), Set::default()).await;
    let taken = u32::try_from(IN_FLIGHT_KIB - 1).unwrap();
    let _all_but_one = rig.proxy.room.clone().acquire_many_owned(taken).await.unwrap();
    let got = rig.send(Method::GET, "/v1/models", &[], "").await;
    assert_eq!(got.status, 200);
}

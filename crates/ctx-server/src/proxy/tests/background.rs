//! Summaries that are written in the background.

use ctx_testkit::provider::{FakeProvider, Reply, Step};
use ctx_trace::{SummaryOutcome, SummaryRecord};

use super::*;

const UPSTREAM: Set = Set {
    window: Some(16_000),
    engine: None,
    config: "{ server: { summaries: 'upstream' } }",
    base: "",
    upstream: None,
    replicas: None,
};

/// Turns whose request is just over the soft threshold, and under the threshold.
const SOFT: usize = 16;

/// Turns whose request is over the threshold.
const OVER: usize = 20;

fn provider(summary: fn() -> Step) -> FakeProvider {
    let step = move |request: &ctx_testkit::provider::Request| match is_summary(request) {
        false => Step::text("done"),
        true => summary(),
    };
    FakeProvider::builder().respond(step).start().unwrap()
}

/// Whether a request is for a summary: those have no tools.
fn is_summary(request: &ctx_testkit::provider::Request) -> bool {
    !request.json["tools"].is_array()
}

fn body(turns: usize) -> Value {
    let tools = json!([{ "type": "function", "function": { "name": "read" } }]);
    json!({ "model": "m", "messages": talk(turns, 600), "tools": tools })
}

impl Rig {
    async fn turn(&self, body: &Value) {
        let got = self.post("/v1/chat/completions", body).await;
        assert!(got.body.contains("done"), "{got:?}");
    }

    /// Returns the last request that is not for a summary.
    fn last_turn(&self) -> ctx_testkit::provider::Request {
        let mut requests = self.provider.requests();
        requests.retain(|request| !is_summary(request));
        requests.pop().expect("a request arrived")
    }

    fn summaries_asked(&self) -> usize {
        self.provider.requests().iter().filter(|request| is_summary(request)).count()
    }

    /// Waits until the compaction in the background is ready.
    async fn ready(&self) {
        let sessions = self.proxy.trace().sessions();
        let conversation = self.proxy.conversations.in_memory(&sessions[0].info.id).unwrap();
        loop {
            if !conversation.background.is_running() {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    async fn summarised(&self) -> Vec<Option<SummaryRecord>> {
        let records = self.records().await;
        records.iter().map(|record| record.compaction.as_ref()?.summarised.clone()).collect()
    }
}

#[tokio::test]
async fn a_summary_is_ready_before_the_threshold() {
    let rig = Rig::new(provider(|| Step::new(Reply::Summary)), UPSTREAM).await;
    for turns in SOFT - 4..=SOFT {
        rig.turn(&body(turns)).await;
        assert_eq!(rig.last_turn().json, body(turns), "it passes unchanged");
    }
    rig.ready().await;
    let asked = rig.summaries_asked();
    for turns in SOFT + 1..=OVER {
        rig.turn(&body(turns)).await;
    }
    assert_eq!(rig.summaries_asked(), asked, "no other summary is written");
    let made = rig.summarised().await;
    let (before, after) = made.split_at(OVER - SOFT + 4);
    assert!(before.iter().all(Option::is_none) && after.len() == 1, "{made:?}");
    let written = after[0].as_ref().expect("a compaction at the threshold");
    assert_eq!((written.outcome, &written.error), (SummaryOutcome::Written, &None));
    let record = rig.records().await.pop().unwrap();
    assert!(record.fits && record.sent_tokens < record.limit.scale(0.75), "{record:?}");
    let made = rig.records().await.into_iter().find(|record| record.compaction.is_some()).unwrap();
    let compaction = made.compaction.as_ref().unwrap();
    assert_eq!(compaction.tokens_before, made.raw_tokens);
    assert_eq!(compaction.tokens_after, Some(made.sent_tokens));
}

#[tokio::test]
async fn no_request_waits_for_a_summary() {
    let rig = Rig::new(provider(|| Step::new(Reply::Summary).held()), UPSTREAM).await;
    for turns in SOFT - 2..OVER + 8 {
        rig.turn(&body(turns)).await;
    }
    assert_eq!(rig.summaries_asked(), 1, "one at a time");
    let made: Vec<_> = rig.summarised().await.into_iter().flatten().collect();
    assert!(!made.is_empty() && made.iter().all(|made| made.outcome == SummaryOutcome::Unasked));
    let warnings = rig.warnings.lock().unwrap().clone();
    let about = |text: &&String| text.contains("does not wait for a model");
    assert_eq!(warnings.iter().filter(about).count(), 1, "{warnings:?}");
    // The summary of a history that was compacted since is of no use.
    rig.provider.release_all();
    rig.turn(&body(OVER + 8)).await;
    assert!(rig.records().await.last().unwrap().compaction.is_none());
}

#[tokio::test]
async fn a_ready_summary_is_used_when_the_cache_is_gone() {
    let rig = Rig::new(provider(|| Step::new(Reply::Summary)), UPSTREAM).await;
    rig.turn(&body(SOFT)).await;
    rig.ready().await;
    rig.turn(&body(SOFT + 1)).await;
    assert_eq!(rig.summarised().await, [None, None]);
    let sessions = rig.proxy.trace().sessions();
    let conversation = rig.proxy.conversations.in_memory(&sessions[0].info.id).unwrap();
    let a_while_ago = ctx_core::Timestamp(ctx_session::clock::now().0 - 2 * 60 * 60 * 1_000);
    conversation.state.lock().await.session.as_mut().unwrap().last_request = Some(a_while_ago);
    rig.turn(&body(SOFT + 2)).await;
    let last = rig.summarised().await.pop().flatten().expect("a compaction");
    assert_eq!(last.outcome, SummaryOutcome::Written);
    assert!(rig.last_turn().prompt.tokens() < 8_000);
}

#[tokio::test]
async fn a_ready_summary_is_used_when_that_pays_for_the_cache_break() {
    // The threshold is reached after fifty more requests, or not known to be worth anything.
    let config = "{ server: { summaries: 'upstream', backgroundRatio: 0.5 } }";
    for (model, is_swapped) in [("gpt-5", true), ("m", false)] {
        let rig =
            Rig::new(provider(|| Step::new(Reply::Summary)), Set { config, ..UPSTREAM }).await;
        let ask = async |turns| {
            let mut body = body(turns);
            body["model"] = json!(model);
            body["messages"] = json!(talk(turns, 200));
            rig.turn(&body).await;
            rig.records().await.pop().unwrap()
        };
        let mut turns = 20;
        while rig.summaries_asked() == 0 {
            ask(turns).await;
            turns += 1;
        }
        rig.ready().await;
        let record = ask(turns).await;
        assert!(record.raw_tokens < record.limit.scale(0.7), "{record:?}");
        let summarised = record.compaction.as_ref().and_then(|made| made.summarised.as_ref());
        let written = summarised.is_some_and(|made| made.outcome == SummaryOutcome::Written);
        assert_eq!(written, is_swapped, "{model}");
    }
}

#[tokio::test]
async fn identical_requests_at_once_compact_once() {
    let rig = Rig::new(provider(|| Step::new(Reply::Summary)), UPSTREAM).await;
    let body = body(OVER + 5);
    tokio::join!(rig.turn(&body), rig.turn(&body), rig.turn(&body));
    assert_eq!(rig.summarised().await.iter().flatten().count(), 1);
    assert_eq!(rig.summaries_asked(), 0);
}

#[tokio::test]
async fn a_summary_without_a_background_is_waited_for() {
    let config = "{ server: { summaries: 'upstream', backgroundRatio: 1 } }";
    let rig = Rig::new(provider(|| Step::new(Reply::Summary)), Set { config, ..UPSTREAM }).await;
    rig.turn(&body(SOFT)).await;
    assert_eq!(rig.summaries_asked(), 0);
    rig.turn(&body(OVER + 5)).await;
    let made = rig.summarised().await.pop().flatten().expect("a compaction");
    assert_eq!(made.outcome, SummaryOutcome::Written);
}

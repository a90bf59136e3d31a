//! Which model writes summaries, and the warnings if none does.

use ctx_testkit::provider::{FailureKind, FakeProvider, Reply, Step};
use ctx_trace::{SummaryOutcome, SummaryRecord};

use super::*;

const UPSTREAM: Set = Set {
    window: Some(16_000),
    engine: None,
    config: "{ server: { summaries: 'upstream', backgroundRatio: 1 } }",
    base: "",
    upstream: None,
    replicas: None,
};

/// Starts a provider that answers `done` to requests with tools, and `summary` to others: a request
/// without tools is for a summary.
fn provider(summary: impl Fn() -> Step + Send + Sync + 'static) -> FakeProvider {
    let builder =
        FakeProvider::builder().respond(move |request| match request.json["tools"].is_array() {
            true => Step::text("done"),
            false => summary(),
        });
    builder.start().unwrap()
}

fn body(turns: usize) -> Value {
    let tools = json!([{ "type": "function", "function": { "name": "read" } }]);
    json!({ "model": "m", "messages": talk(turns, 600), "tools": tools })
}

async fn summarised(rig: &Rig) -> Vec<SummaryRecord> {
    let records = rig.records().await;
    let made = records.iter().filter_map(|record| record.compaction.as_ref()?.summarised.clone());
    made.collect()
}

#[tokio::test]
async fn a_failed_summary_warns_once_and_is_recorded_each_time() {
    let provider = provider(|| Step::error(FailureKind::Unauthorized));
    let rig = Rig::new(provider, UPSTREAM).await;
    for turns in [40, 80] {
        let got = rig.post("/v1/chat/completions", &body(turns)).await;
        assert!(got.body.contains("done"), "{got:?}");
    }
    let made = summarised(&rig).await;
    assert_eq!(made.len(), 2, "{made:?}");
    for made in made {
        assert_eq!((made.outcome, &*made.rung), (SummaryOutcome::Failed, "extractive"));
        assert!(made.calls > 0 && made.error.is_some_and(|error| error.contains("status: 401")));
    }
    let warnings = rig.warnings.lock().unwrap().clone();
    let about: Vec<_> = warnings.iter().filter(|text| text.contains("summary")).collect();
    assert_eq!(about.len(), 1, "{warnings:?}");
    assert!(about[0].contains("401") && about[0].contains("extractive summary"), "{warnings:?}");
    let metrics = rig.send(Method::GET, "/metrics", &[], "").await.body;
    assert!(metrics.contains("ctx_summaries_total{outcome=\"failed\"} 2"), "{metrics}");
}

#[tokio::test]
async fn an_unusable_summary_is_distinguished_from_a_missing_one() {
    for text in ["", "I'm sorry, but I cannot do that."] {
        let rig = Rig::new(provider(move || Step::text(text)), UPSTREAM).await;
        rig.post("/v1/chat/completions", &body(40)).await;
        let made = summarised(&rig).await;
        assert_eq!(made[0].outcome, SummaryOutcome::Unusable, "{made:?}");
        assert!(
            rig.warnings
                .lock()
                .unwrap()
                .iter()
                .any(|text| text.contains("no answer was usable as its summary"))
        );
    }
}

#[tokio::test]
async fn a_summary_written_by_a_model_causes_no_warning() {
    let rig = Rig::new(provider(|| Step::new(Reply::Summary)), UPSTREAM).await;
    rig.post("/v1/chat/completions", &body(40)).await;
    let made = summarised(&rig).await;
    assert_eq!((made[0].outcome, &made[0].error), (SummaryOutcome::Written, &None));
    assert!(!rig.warnings.lock().unwrap().iter().any(|text| text.contains("summary")));
    let rig = Rig::new(provider(|| Step::text("no")), Set::default()).await;
    rig.post("/v1/chat/completions", &body(40)).await;
    let made = summarised(&rig).await;
    assert_eq!((made[0].outcome, made[0].calls), (SummaryOutcome::Extracted, 0));
    assert!(!rig.warnings.lock().unwrap().iter().any(|text| text.contains("summary")));
}

#[tokio::test]
async fn a_google_token_is_sent_with_the_summary_request() {
    let provider =
        FakeProvider::builder().respond(|request| match request.path.contains("openai") {
            true => Step::new(Reply::Summary),
            false => Step::text("done"),
        });
    let rig = Rig::new(provider.start().unwrap(), UPSTREAM).await;
    let contents: Vec<Value> = talk(40, 600)[1..]
        .iter()
        .map(|message| {
            let role = if message["role"] == "user" { "user" } else { "model" };
            json!({ "role": role, "parts": [{ "text": message["content"] }] })
        })
        .collect();
    let body = json!({ "contents": contents });
    let path = "/v1beta/models/gemini-2.5-pro:generateContent";
    let headers = [("authorization", "Bearer ya29.token"), ("x-goog-user-project", "mine")];
    let got = rig.send(Method::POST, path, &headers, body.to_string()).await;
    assert_eq!(got.status, 200, "{got:?}");
    let asked = rig.provider.requests();
    let summary =
        asked.iter().find(|request| request.path.contains("openai")).expect("one is requested");
    assert_eq!(summary.header("authorization"), Some("Bearer ya29.token"));
    assert_eq!(summary.header("x-goog-user-project"), Some("mine"));
    assert_eq!(summarised(&rig).await[0].outcome, SummaryOutcome::Written);
    // Without either, credentials are missing: a failure with a warning.
    let rig = Rig::new(provider_of_nothing(), UPSTREAM).await;
    rig.send(Method::POST, path, &[], body.to_string()).await;
    assert_eq!(summarised(&rig).await[0].outcome, SummaryOutcome::Failed);
    assert!(rig.warnings.lock().unwrap().iter().any(|text| text.contains("no key")));
}

fn provider_of_nothing() -> FakeProvider {
    FakeProvider::builder().respond(|_| Step::text("done")).start().unwrap()
}

#[test]
fn the_summary_model_must_be_configured() {
    let home = TempDir::new().unwrap();
    let config = Config::parse("{ server: { summaries: 'model' } }").unwrap();
    let settings = Settings {
        config: config.section().unwrap(),
        host: Host { config, home: Home::at(home.path()) },
        upstreams: Upstreams::new(&[], &UpstreamsConfig::default()).unwrap(),
        window: None,
        engine: None,
        agent: None,
        replicas: None,
        note: Box::new(|_| {}),
        warn: Box::new(|_| {}),
    };
    let records = home.path().join("records");
    let trace = Arc::new(Trace::at(records, ctx_trace::TraceLimits::default()).unwrap());
    let error = Proxy::new(settings, trace, Metrics::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("agents.defaults.compaction.model"), "{error}");
}

//! Cache breaks and their causes.

use ctx_testkit::provider::{FakeProvider, Step};
use ctx_trace::{BreakCause, PrefixBreak};

use super::*;

fn provider() -> FakeProvider {
    FakeProvider::builder().respond(|_| Step::text("done")).start().unwrap()
}

/// Returns the cache breaks recorded for the only conversation.
async fn breaks(rig: &Rig) -> Vec<Option<PrefixBreak>> {
    rig.records().await.iter().map(|record| record.prefix_break).collect()
}

async fn metrics(rig: &Rig) -> String {
    rig.send(Method::GET, "/metrics", &[], "").await.body
}

#[tokio::test]
async fn a_conversation_that_only_grows_breaks_nothing() {
    let rig = Rig::new(provider(), Set::default()).await;
    let mut all = session(0, 0);
    for n in 0..6 {
        all.extend(work(n, 300));
        rig.chat(&all).await;
    }
    assert_eq!(breaks(&rig).await, vec![None; 6]);
    assert!(!metrics(&rig).await.contains("ctx_prefix_breaks_total{"));
}

#[tokio::test]
async fn changes_by_the_client_are_attributed_to_it() {
    let rig = Rig::new(provider(), Set::default()).await;
    let mut all = session(6, 300);
    rig.chat(&all).await;
    // Changes the instructions, then the last message, inserts a message, and then adds tools.
    all[0] = json!({ "role": "system", "content": "Be very brief." });
    rig.chat(&all).await;
    all[13]["content"] = "The file is empty.".into();
    rig.chat(&all).await;
    all.insert(12, user("And be quick."));
    rig.chat(&all).await;
    let body = json!({ "model": "m", "messages": all, "tools": [{ "type": "function" }] });
    rig.post("/v1/chat/completions", &body).await;
    let breaks = breaks(&rig).await;
    assert_eq!(breaks[0], None);
    for broken in &breaks[1..] {
        assert_eq!(broken.map(|broken| broken.cause), Some(BreakCause::Client), "{breaks:?}");
    }
    // Tokens before the change are not lost.
    assert!(breaks[2].unwrap().tokens < breaks[1].unwrap().tokens, "{breaks:?}");
    assert!(metrics(&rig).await.contains("ctx_prefix_breaks_total{cause=\"client\"} 4"));
}

#[tokio::test]
async fn a_compaction_breaks_the_cache_once_and_reports_its_cost() {
    let rig = Rig::new(provider(), Set::default()).await;
    let all = talk(40, 600);
    let fits = 1 + 2 * 12 + 1;
    for until in [fits, fits + 2, all.len(), all.len()] {
        rig.chat(&all[..until]).await;
    }
    let breaks = breaks(&rig).await;
    assert_eq!((breaks[1], breaks[3]), (None, None), "{breaks:?}");
    let broken = breaks[2].expect("it was compacted");
    assert_eq!(broken.cause, BreakCause::Compaction);
    assert!(broken.tokens > Tokens(5_000), "{broken:?}");
    let metrics = metrics(&rig).await;
    assert!(metrics.contains("ctx_prefix_breaks_total{cause=\"compaction\"} 1"), "{metrics}");
    let lost = format!("ctx_prefix_lost_tokens_total{{cause=\"compaction\"}} {}", broken.tokens);
    assert!(metrics.contains(&lost), "{lost} {metrics}");
}

#[tokio::test]
async fn results_truncated_later_break_the_prefix() {
    let rig = Rig::new(provider(), Set { window: Some(32_000), ..Set::default() }).await;
    let mut all = session(0, 0);
    for n in 0..12 {
        all.extend(work(n, 1_500));
        rig.chat(&all).await;
    }
    let breaks = breaks(&rig).await;
    let edits = breaks.iter().flatten().filter(|broken| broken.cause == BreakCause::Edit).count();
    assert_eq!(edits, breaks.iter().flatten().count(), "{breaks:?}");
    assert!((1..=2).contains(&edits), "{breaks:?}");
}

#[tokio::test]
async fn refused_requests_count_as_not_cached() {
    let strict = FakeProvider::builder().window(Tokens(9_000)).respond(|_| Step::text("done"));
    let rig =
        Rig::new(strict.start().unwrap(), Set { window: Some(64_000), ..Set::default() }).await;
    rig.chat(&session(20, 1_500)).await;
    let records = rig.records().await;
    assert!(records[0].attempts > 1, "{records:?}");
    assert_eq!(records[0].prefix_break, None);
}

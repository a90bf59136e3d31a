//! Conversations of the proxy, from their records.

use std::sync::Mutex;

use ctx_core::{Component, Message, NodeState, Role, Timestamp};
use ctx_trace::{
    CompactionRecord, EntryRecord, Record, RequestOutcome, SessionInfo, Trace, TraceLimits,
};

use super::*;
use crate::proxied::{LiveConversations, Proxied};

fn entry(id: &str, state: NodeState, tokens: u32) -> EntryRecord {
    let layer = (state != NodeState::Kept).then(|| "compaction".into());
    EntryRecord {
        entry: id.into(),
        role: "user".to_owned(),
        state,
        before: Tokens(50),
        tokens: Tokens(tokens),
        reason: layer.clone(),
        layer,
        begins: format!("{id} begins").into(),
    }
}

fn record(number: u64, entries: Vec<EntryRecord>, compaction: Option<CompactionRecord>) -> Record {
    Record {
        session: "c".to_owned(),
        number,
        at: Timestamp(7),
        protocol: "messages".into(),
        model: Some("m".to_owned()),
        window: Tokens(16_000),
        reserve: Tokens(4_000),
        limit: Tokens(12_000),
        raw_tokens: Tokens(20_000),
        sent_tokens: Tokens(9_000),
        cached_tokens: None,
        prompt_tokens: Some(9_100),
        cost_usd: None,
        fits: true,
        unchanged_prefix: Tokens(8_000),
        prefix_break: None,
        status: Some(200),
        outcome: RequestOutcome::Ok,
        attempts: 2,
        compaction,
        actions: Default::default(),
        millis: 0.5,
        components: vec![Component { name: "history".into(), tokens: Tokens(9_000) }],
        entries,
    }
}

fn trace(place: &Place) -> Arc<Trace> {
    let records = place.dir.path().join("records");
    let trace = Trace::at(records, TraceLimits::default()).unwrap();
    let info = SessionInfo { id: "c".into(), title: "a title".into(), ..SessionInfo::default() };
    trace.session(info);
    let kept = |id| entry(id, NodeState::Kept, 50);
    trace.add(record(0, vec![kept("a"), kept("b")], None));
    let made = CompactionRecord {
        request: 1,
        entry_id: Some("s".into()),
        first_kept_entry_id: "b".into(),
        tokens_before: Tokens(100),
        tokens_after: Some(Tokens(60)),
        summary: "sum".to_owned(),
        details: None,
        summarised: None,
        undone: false,
    };
    let entries = vec![
        entry("a", NodeState::Dropped, 0),
        entry("s", NodeState::Inserted, 10),
        kept("b"),
        kept("c"),
    ];
    trace.add(record(1, entries, Some(made)));
    Arc::new(trace)
}

/// A conversation that still has only the message `a`, and records undo calls.
#[derive(Default)]
struct Live {
    undone: Mutex<Vec<(String, String)>>,
}

impl LiveConversations for Live {
    fn message(&self, _session: &str, entry: &str) -> Option<Arc<Message>> {
        let text = "Never touch vendor/. See docs/protocol.md";
        (entry == "a").then(|| Arc::new(Message::text(Role::User, text)))
    }

    fn undo(&self, session: &str, entry: &str) -> ctx_core::Result<()> {
        self.undone.lock().unwrap().push((session.to_owned(), entry.to_owned()));
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_lists_its_requests_like_a_replay() {
    let place = Place::new();
    let api = place.over(Arc::new(Proxied::new(trace(&place), Arc::<Live>::default())));
    let list = api.found("/api/sessions").await;
    let head = &list["sessions"][0];
    assert_eq!((&head["id"], &head["source"]), (&json!("proxy-c"), &json!("proxy")));
    let all = api.found("/api/sessions/proxy-c").await;
    assert_eq!((&all["total"], &all["requests"][1]["number"]), (&json!(2), &json!(2)));
    assert_eq!((&all["requests"][1]["outcome"], &all["limit"]), (&json!("ok"), &json!(12_000)));
    assert_eq!(all["compactions"][0]["canUndo"], true);
    let request = api.found("/api/sessions/proxy-c/requests/2").await;
    assert_eq!(request["states"], json!({"changed": 2, "dropped": 1, "inserted": 1, "kept": 2}));
    assert_eq!(request["edits"].as_array().unwrap().len(), 2);
    let changed = api.found("/api/sessions/proxy-c/requests/2?state=changed").await;
    assert_eq!((&changed["matching"], &changed["entries"][0]["entry"]), (&json!(2), &json!("a")));
    let opened = api.found("/api/sessions/proxy-c/entries/a?request=2").await;
    assert_eq!(opened["recorded"]["parts"][0]["text"], "Never touch vendor/. See docs/protocol.md");
    let opened = api.found("/api/sessions/proxy-c/entries/b?request=2").await;
    assert_eq!(opened["recorded"]["parts"][0]["text"], "b begins");
    assert!(opened["note"].is_string());
    for path in ["requests/3", "requests/0", "entries/x", "compactions/at-1/diff"] {
        let (status, _) = api.get(&format!("/api/sessions/proxy-c/{path}")).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn its_compaction_has_a_diff_and_the_proxy_can_undo_it() {
    let live = Arc::<Live>::default();
    let place = Place::new();
    let api = place.over(Arc::new(Proxied::new(trace(&place), live.clone())));
    let path = "/api/sessions/proxy-c/compactions/at-2";
    let diff = api.found(&format!("{path}/diff?part=removed")).await;
    assert_eq!((&diff["summary"], &diff["removed"][0]["entry"]), (&json!("sum"), &json!("a")));
    let facts = api.found(&format!("{path}/diff")).await;
    assert_eq!(facts["fates"]["summary"], Value::Null, "{facts}");
    assert!(facts["fates"]["lost"].as_u64() > Some(0), "{facts}");
    let may = Some(Access { writes: true });
    let (status, _) = api.ask(Method::POST, &format!("{path}/undo"), may).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(*live.undone.lock().unwrap(), [("c".to_owned(), "s".to_owned())]);
}

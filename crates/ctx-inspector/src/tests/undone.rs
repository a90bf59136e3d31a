//! Undoing compactions.

use ctx_core::{Compacted, Timestamp, Tokens};
use ctx_session::store_compaction;

use super::*;

const MAY: Option<Access> = Some(Access { writes: true });

/// Writes a transcript with a compaction in its overlay. Returns the file and the compaction's id.
fn compacted(place: &Place) -> (PathBuf, String) {
    let file = place.transcript("one.jsonl", 8, 20);
    let made = Compacted {
        summary: "what was said\n- message 3 word".to_owned(),
        first_kept_entry_id: "0000000a".into(),
        tokens_before: Tokens(1_000),
        tokens_after: Some(Tokens(100)),
        details: None,
        projections: Vec::new(),
        staying: Vec::new(),
    };
    let leaf: ctx_core::EntryId = "0000000f".into();
    let id = store_compaction(&place.home(), &file, Some(&leaf), &made, Timestamp(5)).unwrap();
    (file, id.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn undoing_a_compaction_requires_the_token() {
    let place = Place::new();
    let (file, id) = compacted(&place);
    let (api, session) = place.api(&[&file]);
    let overview = format!("/api/sessions/{session}");
    let undone = || async { api.found(&overview).await["compactions"][0]["undone"].clone() };
    assert_eq!(undone().await, false);
    let undo = format!("{overview}/compactions/{id}/undo");
    for access in [None, Some(Access { writes: false })] {
        let (status, body) = api.ask(Method::POST, &undo, access).await;
        assert_eq!((status, &body["error"]["kind"]), (StatusCode::FORBIDDEN, &json!("forbidden")));
    }
    assert_eq!(api.ask(Method::GET, &undo, MAY).await.0, StatusCode::NOT_FOUND);
    assert_eq!(undone().await, false);
    let (status, body) = api.ask(Method::POST, &undo, MAY).await;
    assert_eq!((status, &body["undone"]), (StatusCode::OK, &json!(true)), "{body}");
    while undone().await != true {
        tokio::task::yield_now().await;
    }
    let (_, body) = api.ask(Method::POST, &undo, MAY).await;
    assert_eq!((&body["undone"], &body["redone"]), (&json!(true), &json!(true)));
    while undone().await != false {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_diff_of_a_stored_compaction_lists_removed_messages() {
    let place = Place::new();
    let (file, id) = compacted(&place);
    let (api, session) = place.api(&[&file]);
    let path = format!("/api/sessions/{session}/compactions/{id}/diff?part=removed&count=3");
    let diff = api.found(&path).await;
    assert_eq!(
        (&diff["summary"], &diff["matching"]),
        (&json!("what was said\n- message 3 word"), &json!(10))
    );
    assert_eq!(diff["removed"].as_array().unwrap().len(), 3);
    assert_eq!(diff["removed"][0]["entry"], "00000000");
}

#[tokio::test(flavor = "multi_thread")]
async fn compactions_of_the_replay_are_listed_and_cannot_be_undone() {
    let place = Place::new();
    let file = place.transcript("one.jsonl", 60, 300);
    let (api, session) = place.api(&[&file]);
    let all = api.found(&format!("/api/sessions/{session}")).await;
    let made = &all["compactions"][0];
    assert_eq!((&made["by"], &made["canUndo"]), (&json!("replay"), &json!(false)), "{made}");
    let id = made["id"].as_str().unwrap();
    let diff = api.found(&format!("/api/sessions/{session}/compactions/{id}/diff")).await;
    assert!(diff["removedMessages"].as_u64() > Some(0), "{diff}");
    assert_eq!(diff["removedMessages"], made["messages"]);
    let undo = format!("/api/sessions/{session}/compactions/{id}/undo");
    let (status, body) = api.ask(Method::POST, &undo, MAY).await;
    assert_eq!((status, &body["error"]["kind"]), (StatusCode::BAD_REQUEST, &json!("invalidInput")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_of_a_summary_leads_to_its_message() {
    let place = Place::new();
    let (file, id) = compacted(&place);
    let (api, session) = place.api(&[&file]);
    let why = format!("/api/sessions/{session}/compactions/{id}/why?line=");
    let found = api.found(&format!("{why}-%20what%20was%20said")).await;
    assert_eq!(found["lines"][0]["sources"], json!([]), "no message says it: {found}");
    let found = api.found(&format!("{why}message%203")).await;
    assert_eq!(found["lines"][0]["sources"][0]["entry"], "00000003", "{found}");
    assert_eq!(api.found(&format!("{why}never")).await["lines"], json!([]));
    let (status, _) = api.ask(Method::GET, &why.replace(&id, "unknown"), None).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

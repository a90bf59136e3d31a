//! Conversations with the same beginning.

use std::collections::HashSet;

use ctx_testkit::provider::{FakeProvider, Step};

use super::*;

fn provider() -> FakeProvider {
    FakeProvider::builder().respond(|_| Step::text("done")).start().unwrap()
}

/// Returns one of many conversations with the same first message.
fn chat(n: usize) -> Vec<Value> {
    let mut all = vec![user("hi")];
    for turn in 0..4 {
        all.push(json!({ "role": "assistant", "content": format!("I am {n}, turn {turn}.") }));
        all.push(user(format!("Go on, {n}.")));
    }
    all
}

#[tokio::test]
async fn conversations_with_the_same_beginning_are_told_apart() {
    let rig = Rig::new(provider(), Set::default()).await;
    for _ in 0..2 {
        for n in 0..40 {
            assert_eq!(rig.chat(&chat(n)).await.status, 200);
        }
    }
    let sessions = rig.proxy.trace().sessions();
    let requests: Vec<usize> = sessions.iter().map(|session| session.requests.len()).collect();
    assert_eq!(requests, [2; 40]);
    let ids: HashSet<_> = sessions.iter().map(|session| session.info.id.clone()).collect();
    assert_eq!(ids.len(), 40);
}

#[tokio::test]
async fn a_second_server_in_one_home_stores_nothing_and_warns() {
    let rig = Rig::new(provider(), Set::default()).await;
    let other = Rig::beside(&rig, provider()).await;
    let all = session(30, 1_500);
    assert_eq!(other.chat(&all).await.status, 200);
    other.proxy.settle();
    let kept = || {
        let files = std::fs::read_dir(rig.home.path().join("proxy")).unwrap();
        files.flatten().filter(|file| file.path().extension().is_some_and(|e| e == "jsonl")).count()
    };
    assert_eq!(kept(), 0);
    let warnings = other.warnings.lock().unwrap().clone();
    let first = format!("server: process {} at {}", std::process::id(), rig.url);
    let says =
        |warning: &String| warning.contains("another `ctx serve`") && warning.contains(&first);
    assert!(warnings.iter().any(says), "{warnings:?}");
    assert_eq!(rig.chat(&all).await.status, 200);
    rig.proxy.settle();
    assert_eq!(kept(), 1);
}

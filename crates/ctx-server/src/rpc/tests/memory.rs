//! Long-term memory of host sessions.

use serde_json::json;

use super::*;

const FACT: &str = "the parrot of the lighthouse keeper is called Quillon";
const QUESTION: &str = "what is the parrot of the lighthouse keeper called?";

/// Returns calls that open session `s` with memory enabled, and append messages about many modules
/// and one parrot.
fn with_messages(engine: &str) -> Calls {
    let mut calls = Calls::default();
    let config = json!({ "agents": { "defaults": { "memoryContext": { "enabled": true } } } });
    calls.call(
        "open",
        json!({ "sessionId": "s", "engine": engine, "window": 32_000, "config": config }),
    );
    let mut messages = Vec::new();
    for n in 0..300 {
        messages.push(match n {
            4 => user(&format!("one question before we go on: {FACT}. Noted?")),
            _ => user(&format!("please look at module {n} and tell what it does")),
        });
        let answer = format!("module {n} reads its input, checks it and writes it. ").repeat(8);
        messages
            .push(json!({ "role": "assistant", "content": [{ "type": "text", "text": answer }] }));
    }
    calls.s("append", json!({ "messages": messages }));
    calls
}

fn recalled(answer: &Value) -> Option<String> {
    texts(answer).into_iter().find(|text| text.starts_with("<recalled-context"))
}

fn end_at(home: &TempDir, calls: Calls) -> Vec<Value> {
    let mut answers = exchange_at(home, calls.0);
    assert_eq!(answers.len(), calls.1, "{answers:?}");
    answers.sort_by_key(|answer| answer["id"].as_u64());
    answers
}

#[test]
fn compacted_messages_are_recalled_on_request() {
    for engine in ["legacy", "memory-context"] {
        let home = TempDir::new().unwrap();
        let mut calls = with_messages(engine);
        let before = calls.s("assemble", json!({}));
        let compacted = calls.s("compact", json!({ "force": true }));
        calls.append(&[QUESTION]);
        let after = calls.s("assemble", json!({}));
        let closed = calls.s("close", json!({}));
        let answers = end_at(&home, calls);
        assert_eq!(recalled(&answers[before]), None, "{engine}: no question was sent");
        assert_eq!(result(&answers[compacted])["compacted"], true, "{engine}");
        let block = recalled(&answers[after]).unwrap_or_else(|| panic!("{}", answers[after]));
        assert!(block.contains(FACT), "{engine}: {block}");
        assert_eq!(result(&answers[closed]), &json!({ "closed": true }), "{engine}");
        let archive = home.path().join("agents/main/memory/context/segments.jsonl");
        assert!(std::fs::read_to_string(archive).unwrap().contains(FACT), "{engine}");

        // The session is reopened with an empty history.
        let mut calls = Calls::default();
        let config = json!({ "agents": { "defaults": { "memoryContext": { "enabled": true } } } });
        calls.call("open", json!({ "sessionId": "s", "window": 32_000, "config": config }));
        calls.append(&[QUESTION]);
        let again = calls.s("assemble", json!({}));
        let answers = end_at(&home, calls);
        assert!(recalled(&answers[again]).is_some_and(|block| block.contains(FACT)), "{engine}");
    }
}

#[test]
fn messages_removed_by_layers_are_on_disk_at_the_end_of_input() {
    let home = TempDir::new().unwrap();
    let mut calls = with_messages("legacy");
    let assembled = calls.s("assemble", json!({}));
    let answers = end_at(&home, calls);
    let sent = texts(&answers[assembled]).len();
    assert!(sent < 600, "not all messages fit: {sent}");
    let archive = home.path().join("agents/main/memory/context/segments.jsonl");
    let archived = std::fs::read_to_string(archive).unwrap();
    assert!(archived.contains(FACT) && archived.lines().count() >= 50, "{}", archived.len());
}

#[test]
fn a_session_that_cannot_be_reopened_stores_nothing() {
    let home = TempDir::new().unwrap();
    let mut calls = Calls::default();
    let config = json!({ "agents": { "defaults": { "memoryContext": { "enabled": true } } } });
    calls.call("open", json!({ "window": 32_000, "config": config }));
    end_at(&home, calls);
    assert!(!home.path().join("agents/main/memory").exists());
}

#[test]
fn an_unwritable_memory_is_reported_and_the_turn_continues() {
    let home = TempDir::new().unwrap();
    std::fs::create_dir_all(home.path().join("agents/main/memory")).unwrap();
    std::fs::write(home.path().join("agents/main/memory/context"), "a file").unwrap();
    let mut calls = with_messages("legacy");
    calls.s("compact", json!({ "force": true }));
    calls.append(&[QUESTION]);
    let after = calls.s("assemble", json!({}));
    calls.s("close", json!({}));
    let answers = end_at(&home, calls);
    assert!(!texts(&answers[after]).is_empty());
    let warned = answers.iter().filter_map(|a| a["result"]["warnings"].as_array()).flatten();
    assert!(
        warned.clone().any(|w| w.as_str().unwrap_or_default().contains("context")),
        "{warned:?}"
    );
}

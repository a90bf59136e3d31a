//! Opening and closing sessions, and their parameters.

use serde_json::json;

use super::*;

#[test]
fn open_returns_the_settings_of_the_session() {
    let mut calls = Calls::default();
    calls.call(
        "open",
        json!({
            "sessionId": "s",
            "profile": "memory-context",
            "window": 64_000,
            "reserveTokens": 4_000,
            "counter": "cjk",
            "systemPrompt": "You help.",
            "tools": [{ "name": "read", "input_schema": { "type": "object" } }],
        }),
    );
    calls.s("status", json!({}));
    let answers = calls.end();
    for answer in [result(&answers[0]), result(&answers[1])] {
        assert_eq!(answer["sessionId"], "s");
        assert_eq!(answer["engine"]["id"], "legacy");
        assert_eq!(answer["profile"], "memory-context");
        assert_eq!(answer["counter"], "cjk");
        assert_eq!((&answer["window"], &answer["reserve"]), (&json!(64_000), &json!(4_000)));
        assert_eq!(answer["limit"], 60_000);
        assert!(answer["system"].as_u64() > Some(0) && answer["tools"].as_u64() > Some(5));
    }
    assert_eq!(result(&answers[0])["selectedBy"], "default");
}

#[test]
fn an_invalid_open_is_refused_and_leaves_no_session() {
    for (params, expected) in [
        (json!({ "engine": "nope" }), "notFound"),
        (json!({ "model": "no-such-model" }), "notFound"),
        (json!({ "window": 100 }), "windowTooSmall"),
        (json!({ "counter": "words" }), "invalidInput"),
        (json!({ "agent": "../up" }), "invalidInput"),
        (json!({ "sessionFile": "/no/such/file" }), "notFound"),
        (json!({ "config": { "nope": 1 } }), "config"),
        (
            json!({ "config": { "plugins": { "engines": { "x": { "trust": "in-process" } } } } }),
            "config",
        ),
    ] {
        let mut calls = Calls::default();
        let mut params = params;
        params["sessionId"] = "s".into();
        calls.call("open", params.clone());
        calls.s("status", json!({}));
        let answers = calls.end();
        assert_eq!(kind(&answers[0]), expected, "{params}: {}", answers[0]);
        assert!(answers[0]["error"]["data"]["hint"].is_string(), "{params}: {}", answers[0]);
        assert_eq!(kind(&answers[1]), "notFound", "{params}");
    }
}

#[test]
fn the_settings_of_a_session_override_the_file() {
    let mut calls = Calls::default();
    let config =
        json!({ "profile": "ponybunny", "agents": { "defaults": { "contextTokens": 50_000 } } });
    calls.call("open", json!({ "config": config }));
    let answers = calls.end();
    let opened = result(&answers[0]);
    assert_eq!((&opened["profile"], &opened["window"]), (&json!("ponybunny"), &json!(50_000)));
    assert!(opened["sessionId"].as_str().is_some_and(|id| id.len() > 8), "{opened}");
}

#[test]
fn two_sessions_are_independent() {
    let mut calls = Calls::open("legacy");
    calls.call("open", json!({ "sessionId": "t", "window": 32_000, "format": "openai" }));
    for n in 0..20 {
        calls.append(&[&format!("s{n}")]);
        let messages = json!([{ "role": "user", "content": format!("t{n}") }]);
        calls.call("append", json!({ "sessionId": "t", "messages": messages }));
    }
    let s = calls.s("assemble", json!({}));
    let t = calls.call("assemble", json!({ "sessionId": "t" }));
    let answers = calls.end();
    let named = |name: &str| (0..20).map(|n| format!("{name}{n}")).collect::<Vec<_>>();
    assert_eq!(texts(&answers[s]), named("s"));
    assert_eq!(texts(&answers[t]), named("t"));
}

#[test]
fn an_id_is_in_use_until_its_session_is_closed() {
    let mut calls = Calls::open("legacy");
    let again = calls.call("open", json!({ "sessionId": "s", "window": 32_000 }));
    calls.append(&["hello"]);
    let closed = calls.s("close", json!({}));
    let answers = calls.end();
    assert_eq!(kind(&answers[again]), "conflict");
    assert_eq!(result(&answers[closed])["closed"], true);
}

#[test]
fn a_call_after_the_close_finds_no_session() {
    let mut calls = Calls::open("legacy");
    calls.s("close", json!({}));
    let late = calls.append(&["too late"]);
    let answers = calls.end();
    assert_eq!(kind(&answers[late]), "notFound");
}

#[test]
fn a_session_file_provides_the_history() {
    let home = TempDir::new().expect("a temporary folder");
    let path = home.path().join("s.jsonl");
    let line = |id: &str, parent: serde_json::Value, text: &str| {
        json!({
            "type": "message", "id": id, "parentId": parent,
            "timestamp": "2026-01-05T08:00:00.000Z",
            "message": { "role": "user", "content": text, "timestamp": 1 },
        })
        .to_string()
    };
    let header = json!({ "type": "session", "version": 3, "id": "x",
        "timestamp": "2026-01-05T08:00:00.000Z", "cwd": "/w" });
    let (one, two) = (line("0a", json!(null), "one"), line("0b", json!("0a"), "two"));
    let lines = [header.to_string(), one, two];
    std::fs::write(&path, lines.join("\n")).expect("a file");
    let mut calls = Calls::default();
    calls.call("open", json!({ "sessionId": "s", "window": 32_000, "sessionFile": path }));
    calls.s("assemble", json!({}));
    // Sent again by the host, with its own copies.
    calls.s("sync", json!({ "messages": [user("one"), user("two"), user("three")] }));
    let answers = calls.end();
    assert_eq!(result(&answers[0])["messages"], 2);
    assert_eq!(texts(&answers[1]), ["one", "two"]);
    assert_eq!(result(&answers[1])["ids"], json!(["0a", "0b"]));
    assert_eq!(result(&answers[2])["common"], 2);
    assert_eq!(result(&answers[2])["added"], 1);
}

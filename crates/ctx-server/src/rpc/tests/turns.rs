//! Requests and compactions, and their recovery from errors.

use serde_json::json;

use super::*;

/// Returns calls that append `turns` turns of a question, a call, its result and an answer; and the
/// messages.
fn with_turns(engine: &str, turns: usize) -> (Calls, Vec<Value>) {
    let all: Vec<Value> = (0..turns)
        .flat_map(|n| {
            let id = format!("call-{n}");
            let output = format!("line {n} of src/file_{n}.rs\n").repeat(30);
            [
                user(&format!("question {n}: what does src/file_{n}.rs do?")),
                json!({ "role": "assistant", "content": [
                    { "type": "toolCall", "id": id, "name": "read", "arguments": { "n": n } },
                ]}),
                json!({ "role": "toolResult", "toolCallId": id, "toolName": "read",
                    "content": [{ "type": "text", "text": output }], "isError": false }),
                json!({ "role": "assistant", "content": [
                    { "type": "text", "text": format!("It holds the lines of {n}.") },
                ]}),
            ]
        })
        .collect();
    let mut calls = Calls::open(engine);
    calls.s("append", json!({ "messages": all }));
    (calls, all)
}

#[test]
fn a_failing_engine_is_an_error_object_and_the_session_continues() {
    let mut calls = Calls::open("obedient");
    calls.append(&["one", "fail"]);
    let failed = calls.s("assemble", json!({}));
    calls.append(&["panic"]);
    let panicked = calls.s("assemble", json!({}));
    calls.append(&["two"]);
    let after = calls.s("assemble", json!({}));
    let answers = calls.end();
    assert_eq!(kind(&answers[failed]), "contract");
    let error = &answers[failed]["error"];
    assert_eq!((&error["code"], &error["data"]["hint"]), (&json!(-32000), &json!("take another")));
    assert_eq!(error["data"]["facts"]["engine"], "obedient");
    assert_eq!(answers[panicked]["error"]["code"], -32603);
    assert_eq!(texts(&answers[after]), ["one", "fail", "panic", "two"]);
}

#[test]
fn a_message_that_the_engine_failed_to_ingest_is_sent_again() {
    let mut calls = Calls::open("obedient");
    let failed = calls.append(&["ingest fails once"]);
    let after = calls.append(&["count"]);
    let assembled = calls.s("assemble", json!({}));
    let answers = calls.end();
    assert_eq!(kind(&answers[failed]), "timeout");
    assert_eq!(answers[failed]["error"]["data"]["retryable"], true);
    assert_eq!(result(&answers[after])["ids"], json!(["00000001"]));
    // One failed call, then two.
    assert_eq!(result(&answers[assembled])["systemPromptAddition"], "3");
    assert_eq!(texts(&answers[assembled]), ["ingest fails once", "count"]);
}

#[test]
fn cuts_stay_when_the_view_is_rebuilt() {
    let mut calls = Calls::open("obedient");
    calls.append(&["old", "drop"]);
    let first = calls.s("assemble", json!({}));
    calls.append(&["fail"]);
    calls.s("assemble", json!({}));
    calls.append(&["fine"]);
    let after = calls.s("assemble", json!({}));
    let answers = calls.end();
    assert_eq!(texts(&answers[first]), ["drop"]);
    assert_eq!(result(&answers[first])["acted"], json!(["obedient"]));
    assert_eq!(texts(&answers[after]), ["drop", "fail", "fine"]);
    assert_eq!(result(&answers[after])["acted"], json!([]), "old edits are not reported");
    assert!(result(&answers[after])["unchangedPrefix"].as_u64() > Some(0));
}

#[test]
fn an_addition_to_the_system_prompt_is_counted() {
    let mut calls = Calls::open("obedient");
    calls.append(&["one"]);
    let without = calls.s("assemble", json!({}));
    calls.append(&["add"]);
    let with = calls.s("assemble", json!({}));
    let again = calls.s("assemble", json!({}));
    let answers = calls.end();
    let tokens = |at: usize| result(&answers[at])["tokens"].as_u64().expect("a number");
    assert_eq!(result(&answers[with])["systemPromptAddition"], "said by the engine");
    // One token for "add", five for the addition.
    assert_eq!(tokens(with), tokens(without) + 6);
    assert_eq!(result(&answers[with])["unchangedPrefix"], 0);
    assert_eq!(result(&answers[again])["unchangedPrefix"], tokens(again));
}

#[test]
fn requests_fit_and_a_rebuilt_view_gives_the_same_request() {
    let (mut calls, mut all) = with_turns("legacy", 200);
    let first = calls.s("assemble", json!({}));
    // The end of the list changes and changes back: the view is rebuilt twice.
    let last = all.pop().expect("messages");
    calls.s("sync", json!({ "messages": all }));
    all.push(last);
    calls.s("sync", json!({ "messages": all }));
    let second = calls.s("assemble", json!({}));
    let answers = calls.end();
    let (first, second) = (result(&answers[first]), result(&answers[second]));
    assert!(first["tokens"].as_u64() <= first["limit"].as_u64(), "{first:.300}");
    assert!(first["acted"].as_array().is_some_and(|acted| !acted.is_empty()), "{first:.300}");
    assert_eq!(second["messages"], first["messages"]);
    assert_eq!(second["unchangedPrefix"], second["tokens"]);
}

#[test]
fn a_compaction_is_in_the_requests_that_follow() {
    let (mut calls, mut all) = with_turns("legacy", 40);
    let compacted = calls.s("compact", json!({ "force": true, "tokenBudget": 3000 }));
    let assembled = calls.s("assemble", json!({}));
    all.push(user("and now?"));
    let grown = calls.s("sync", json!({ "messages": all }));
    let after = calls.s("assemble", json!({}));
    let answers = calls.end();
    let compacted = result(&answers[compacted]);
    assert_eq!((&compacted["ok"], &compacted["compacted"]), (&json!(true), &json!(true)));
    let summary = compacted["result"]["summary"].as_str().expect("a summary");
    assert_eq!(result(&answers[grown])["common"], 160);
    for at in [assembled, after] {
        let request = result(&answers[at]);
        let is_summary = |m: &Value| m["role"] == "compactionSummary";
        let summaries: Vec<&Value> =
            request["messages"].as_array().unwrap().iter().filter(|m| is_summary(m)).collect();
        assert_eq!(summaries.len(), 1);
        assert_eq!(summaries[0]["summary"], summary);
        assert!(request["ids"].as_array().unwrap().contains(&compacted["summaryId"]));
    }
    let texts = texts(&answers[after]);
    assert_eq!(texts.last().map(String::as_str), Some("and now?"));
    assert!(texts.len() < 100);
}

#[test]
fn a_compaction_outlives_its_view_and_ends_with_its_messages() {
    let mut calls = Calls::open("obedient");
    calls.append(&["one", "two", "three", "four"]);
    let compacted = calls.s("compact", json!({ "customInstructions": "00000002" }));
    let first = calls.s("assemble", json!({}));
    calls.append(&["fail"]);
    calls.s("assemble", json!({}));
    calls.append(&["five"]);
    let second = calls.s("assemble", json!({}));
    let list = |texts: &[&str]| texts.iter().map(|text| user(text)).collect::<Value>();
    let edited_after = list(&["one", "two", "three", "vier", "five"]);
    calls.s("sync", json!({ "messages": edited_after }));
    let third = calls.s("assemble", json!({}));
    calls.s("sync", json!({ "messages": list(&["one", "zwei", "three", "five"]) }));
    let fourth = calls.s("assemble", json!({}));
    let answers = calls.end();
    assert_eq!(result(&answers[compacted])["compacted"], true);
    let summary = "what was said before";
    assert_eq!(texts(&answers[first]), [summary, "three", "four"]);
    assert_eq!(result(&answers[first])["ids"][0], result(&answers[compacted])["summaryId"]);
    assert_eq!(texts(&answers[second]), [summary, "three", "four", "fail", "five"]);
    assert_eq!(texts(&answers[third]), [summary, "three", "vier", "five"]);
    assert_eq!(texts(&answers[fourth]), ["one", "zwei", "three", "five"]);
}

#[test]
fn a_compaction_that_does_not_fit_is_refused_and_changes_nothing() {
    let mut calls = Calls::open("obedient");
    calls.append(&["one", "two", "three"]);
    let wrong = calls.s("compact", json!({ "customInstructions": "nowhere" }));
    let nothing = calls.s("compact", json!({}));
    let after = calls.s("assemble", json!({}));
    let answers = calls.end();
    assert_eq!(kind(&answers[wrong]), "contract");
    assert_eq!(result(&answers[nothing])["compacted"], false);
    assert!(result(&answers[nothing])["reason"].is_string());
    assert_eq!(texts(&answers[after]), ["one", "two", "three"]);
}

#[test]
fn the_count_of_the_provider_corrects_estimates() {
    let mut calls = Calls::open("legacy");
    let early = calls.s("usage", json!({ "promptTokens": 10 }));
    calls.append(&[&"word ".repeat(4_000)]);
    let before = calls.s("assemble", json!({}));
    let usage = calls.s("usage", json!({ "promptTokens": 10_000 }));
    let after = calls.s("assemble", json!({}));
    let status = calls.s("status", json!({}));
    let answers = calls.end();
    assert_eq!(kind(&answers[early]), "invalidInput");
    assert_eq!(result(&answers[before])["tokens"], 5_000);
    assert_eq!(result(&answers[usage])["calibration"], 2.0);
    assert_eq!(result(&answers[after])["tokens"], 10_000);
    assert_eq!(result(&answers[status])["calibration"], 2.0);
}

#[test]
fn pending_input_of_the_host_is_reserved() {
    let (mut calls, _) = with_turns("legacy", 200);
    let pending = calls.s("assemble", json!({ "pendingTokens": 9_000, "now": 1 }));
    let prompt = calls.s("assemble", json!({ "prompt": "x".repeat(400), "now": 2 }));
    let too_much = calls.s("assemble", json!({ "pendingTokens": 32_000, "now": 3 }));
    let after = calls.s("assemble", json!({ "now": 4 }));
    let answers = calls.end();
    for at in [pending, prompt, after] {
        let request = result(&answers[at]);
        assert!(request["tokens"].as_u64() <= request["limit"].as_u64());
    }
    let tokens = |at: usize| result(&answers[at])["tokens"].as_u64().unwrap_or_default();
    assert_eq!(tokens(prompt), tokens(after) + 100);
    assert_eq!(kind(&answers[too_much]), "invalidInput");
}

#[test]
fn a_request_can_be_returned_in_another_format() {
    let (mut calls, _) = with_turns("legacy", 2);
    let anthropic = calls.s("assemble", json!({ "format": "anthropic" }));
    let openai = calls.s("assemble", json!({ "format": "openai" }));
    let answers = calls.end();
    let blocks = &result(&answers[anthropic])["messages"][1]["content"];
    assert_eq!(blocks[0]["type"], "tool_use", "{blocks}");
    let message = &result(&answers[openai])["messages"][1];
    assert_eq!(message["tool_calls"][0]["id"], "call-0", "{message}");
}

#[test]
fn the_engine_is_notified_of_subagents_and_ends_of_turns() {
    let mut calls = Calls::open("obedient");
    let spawn = json!({ "childSessionKey": "agent:main:subagent:1", "ttlMs": 1_000 });
    calls.s("prepare_subagent_spawn", spawn.clone());
    calls.s("rollback_subagent_spawn", spawn);
    let ended = json!({ "childSessionKey": "agent:main:subagent:1", "reason": "completed" });
    calls.s("on_subagent_ended", ended);
    calls.s("commit_turn", json!({ "advancementKey": "turn-1" }));
    calls.s("after_turn", json!({}));
    calls.s("maintain", json!({}));
    let unknown = calls.s("on_subagent_ended", json!({ "childSessionKey": "x", "reason": "?" }));
    let answers = calls.end();
    for answer in &answers[1..unknown] {
        assert_eq!(result(answer)["ok"], true);
    }
    assert_eq!(answers[unknown]["error"]["code"], -32602);
}

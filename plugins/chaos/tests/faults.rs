//! Each fault has its effect, and without a fault everything works.

use chaos::serve_on;
use serde_json::{Value, json};

/// Returns the output on the pipe after these calls, line by line.
fn lines(config: &Value, calls: &[Value]) -> Vec<Vec<u8>> {
    let hello = json!({"id": 1, "verb": "hello",
        "params": {"protocol": "1.0", "config": config}});
    let mut input = format!("{hello}\n");
    for call in calls {
        input.push_str(&format!("{call}\n"));
    }
    let mut output = Vec::new();
    serve_on(input.as_bytes(), &mut output).expect("a pipe in memory");
    output
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(<[u8]>::to_vec)
        .collect()
}

fn answers(config: &Value, calls: &[Value]) -> Vec<Value> {
    lines(config, calls).iter().map(|line| serde_json::from_slice(line).expect("JSON")).collect()
}

fn call(id: u64, verb: &str) -> Value {
    let row = |id: &str, role: &str, group: u64, keep: bool| json!({"id": id, "role": role, "group": group, "keep": keep, "tokens": 5});
    let rows = [
        row("s", "system", 0, true),
        row("u", "user", 1, false),
        row("c", "assistant", 2, false),
        row("r", "toolResult", 2, false),
        row("p", "user", 3, true),
    ];
    json!({"id": id, "verb": verb, "params": {"sessionId": "s", "budget": {"window": 100},
        "update": {"reset": true, "rows": rows.len(), "added": rows}}})
}

/// Returns the answer to one `assemble` with a fault.
fn assembled(fault: &str) -> Value {
    answers(&json!({"fault": fault, "bytes": 5_000, "ms": 1}), &[call(2, "assemble")])[1].clone()
}

#[test]
fn without_a_fault_everything_is_kept() {
    let all = answers(&json!(null), &[call(2, "assemble"), call(3, "compact")]);
    assert_eq!(all[0]["ok"]["id"], "chaos");
    assert_eq!(all[1]["ok"], json!({}));
    assert_eq!(all[2]["ok"]["compacted"], false);
}

#[test]
fn each_fault_makes_a_different_wrong_answer() {
    assert_eq!(assembled("panic")["error"]["kind"], "panic");
    assert_eq!(assembled("forget")["error"]["kind"], "outOfStep");
    assert_eq!(assembled("lie-about-tokens")["ok"]["estimatedTokens"], 1);
    assert_eq!(assembled("drop-system-prompt")["ok"]["drop"], json!(["s"]));
    assert_eq!(assembled("drop-pinned")["ok"]["drop"], json!(["s", "p"]));
    assert_eq!(assembled("split-pair")["ok"]["drop"], json!(["c"]));
    assert_eq!(assembled("unknown-row")["ok"]["drop"], json!(["no-such-row"]));
    assert_eq!(assembled("bad-message")["ok"]["messages"][0]["message"]["role"], 7);
    assert!(assembled("huge-answer").to_string().len() > 5_000);
    assert!(assembled("too-big")["ok"]["insert"][0]["text"].as_str().unwrap().len() > 1_000);
    assert_eq!(assembled("wrong-id")["id"], 3);
    for harmless in ["slow", "leak"] {
        assert_eq!(assembled(harmless)["ok"], json!({}), "{harmless}");
    }
    let garbage = lines(&json!({"fault": "garbage"}), &[call(2, "assemble")]);
    assert!(serde_json::from_slice::<Value>(&garbage[1]).is_err());
}

#[test]
fn compactions_can_have_faults() {
    let compact = |fault: &str| answers(&json!({"fault": fault}), &[call(2, "compact")])[1].clone();
    assert_eq!(compact("compact-nothing")["ok"]["result"]["firstKeptEntryId"], "s");
    assert_eq!(compact("compact-unknown-entry")["ok"]["result"]["firstKeptEntryId"], "no-such-row");
}

#[test]
fn a_fault_occurs_at_its_verb_after_the_given_number_of_calls() {
    let config = json!({"fault": "panic", "at": "ingest", "after": 1});
    let ingest = |id: u64| {
        json!({"id": id, "verb": "ingest",
        "params": {"sessionId": "s", "row": {"id": format!("m{id}")}}})
    };
    let all = answers(&config, &[call(2, "assemble"), ingest(3), ingest(4)]);
    assert!(all[1]["ok"].is_object() && all[2]["ok"].is_object());
    assert_eq!(all[3]["error"]["kind"], "panic");
}

#[test]
fn invalid_orders_are_refused() {
    for config in [json!({"fault": "sing"}), json!({"at": "dinner"}), json!({"often": true})] {
        assert_eq!(answers(&config, &[])[0]["error"]["kind"], "failed", "{config}");
    }
}

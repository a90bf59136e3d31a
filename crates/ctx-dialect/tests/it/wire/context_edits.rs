//! Anthropic's `context_management`, made by ctx.

use ctx_dialect::wire::{Protocol, Request, has_context_edits, route, with_context_edits};
use serde_json::{Value, json};

/// Returns a history with four calls and results, and thinking before each call.
fn body(edits: &Value) -> Value {
    let mut messages = vec![json!({ "role": "user", "content": "Read." })];
    for n in 0..4 {
        let name = if n == 1 { "memory" } else { "read" };
        messages.push(json!({ "role": "assistant", "content": [
            { "type": "thinking", "thinking": "Hm.", "signature": "s" },
            { "type": "tool_use", "id": format!("t{n}"), "name": name, "input": { "n": n } }] }));
        messages.push(json!({ "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": format!("t{n}"), "content": "x".repeat(400) }] }));
    }
    json!({ "model": "m", "messages": messages, "context_management": { "edits": edits } })
}

fn edited(edits: &Value) -> Value {
    let (route, text) = (route("POST", "/v1/messages").expect("valid"), body(edits).to_string());
    assert!(has_context_edits(Protocol::Messages, &text));
    assert!(!has_context_edits(Protocol::Chat, &text));
    let out = with_context_edits(&Request::parse(&route, &text).expect("valid")).expect("valid");
    assert!(!has_context_edits(Protocol::Messages, &out), "{out}");
    serde_json::from_str(&out).expect("valid")
}

/// Returns the numbers of the cleared results, and of the messages with thinking.
fn changes(edits: &Value) -> (Vec<usize>, usize) {
    let out = edited(edits);
    let messages = out["messages"].as_array().expect("valid");
    let is_cleared = |n: &usize| !messages[2 + 2 * n].to_string().contains("xxx");
    let thinking = messages.iter().filter(|message| message.to_string().contains("thinking"));
    ((0..4).filter(is_cleared).collect(), thinking.count())
}

#[test]
fn old_tool_results_are_cleared_over_the_trigger() {
    let tool_uses = |more: Value| {
        let mut edit = json!({ "type": "clear_tool_uses_20250919" });
        edit.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!([edit])
    };
    let trigger = json!({ "type": "input_tokens", "value": 100 });
    let keep = json!({ "type": "tool_uses", "value": 1 });
    for (more, cleared) in [
        (json!({}), vec![]),
        (json!({ "trigger": trigger }), vec![0]),
        (json!({ "trigger": { "type": "tool_uses", "value": 3 }, "keep": keep }), vec![0, 1, 2]),
        (json!({ "trigger": { "type": "tool_uses", "value": 4 }, "keep": keep }), vec![]),
        (json!({ "trigger": trigger, "keep": keep, "exclude_tools": ["memory"] }), vec![0, 2]),
        (
            json!({ "trigger": trigger, "clear_at_least": { "type": "input_tokens", "value": 90 } }),
            vec![0],
        ),
        (
            json!({ "trigger": trigger, "clear_at_least": { "type": "input_tokens", "value": 110 } }),
            vec![],
        ),
    ] {
        assert_eq!(changes(&tool_uses(more.clone())), (cleared, 4), "{more}");
    }
    let inputs = json!({ "trigger": trigger, "clear_tool_inputs": true });
    let out = edited(&tool_uses(inputs));
    assert_eq!(out["messages"][1]["content"][1]["input"], json!({}));
    assert_eq!(out["messages"][3]["content"][1]["input"], json!({ "n": 1 }));
}

#[test]
fn old_thinking_is_removed() {
    for (keep, thinking) in [
        (json!({}), 1),
        (json!({ "keep": "all" }), 4),
        (json!({ "keep": { "type": "thinking_turns", "value": 2 } }), 2),
    ] {
        let mut edit = json!({ "type": "clear_thinking_20251015" });
        edit.as_object_mut().unwrap().extend(keep.as_object().unwrap().clone());
        assert_eq!(changes(&json!([edit])), (vec![], thinking), "{keep}");
    }
}

#[test]
fn invalid_and_unknown_edits_are_left_out() {
    for edits in [json!([{ "type": "compact_20260112" }]), json!(["x", 5]), json!("x"), json!(null)]
    {
        assert_eq!(changes(&edits), (vec![], 4), "{edits}");
    }
}

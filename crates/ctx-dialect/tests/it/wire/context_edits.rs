//! Anthropic's `context_management`, made by ctx.

use ctx_dialect::wire::{
    ContextCompaction, Protocol, Request, context_compaction, has_context_edits, route,
    with_compaction, with_context_edits,
};
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
    let request = Request::parse(&route, &text).expect("valid");
    let out = with_context_edits(&request).expect("valid").body;
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

#[test]
fn the_edits_are_described_for_the_answer() {
    let edits = json!([
        { "type": "clear_tool_uses_20250919", "trigger": { "type": "tool_uses", "value": 1 } },
        { "type": "clear_thinking_20251015" },
        { "type": "clear_thinking_20251015", "keep": "all" },
    ]);
    let (route, text) = (route("POST", "/v1/messages").unwrap(), body(&edits).to_string());
    let made = with_context_edits(&Request::parse(&route, &text).unwrap()).unwrap();
    let applied: Vec<Value> =
        made.applied.unwrap().iter().map(|one| serde_json::from_str(one).unwrap()).collect();
    assert_eq!(applied.len(), 2);
    assert_eq!(
        (&applied[0]["type"], &applied[0]["cleared_tool_uses"]),
        (&edits[0]["type"], &json!(1))
    );
    assert!(applied[0]["cleared_input_tokens"].as_u64() >= Some(100));
    assert_eq!(applied[1]["cleared_thinking_turns"], 3);
}

/// Returns a history of three messages with a compaction in the second one, as the next request has
/// it, without `context_management`.
fn compacted(blocks: &Value) -> Value {
    let message = |role: &str, content: &Value| json!({ "role": role, "content": content });
    let messages = [
        message("user", &json!("Old.")),
        message("assistant", blocks),
        message("user", &json!("New.")),
    ];
    json!({ "model": "m", "messages": messages })
}

#[test]
fn a_compaction_becomes_a_message_of_the_user_and_nothing_stands_before_it() {
    let route = route("POST", "/v1/messages").unwrap();
    let out = |blocks: &Value| -> Value {
        let text = compacted(blocks).to_string();
        let made = with_context_edits(&Request::parse(&route, &text).unwrap()).unwrap();
        assert_eq!(made.applied, None, "no edits were asked for");
        serde_json::from_str(&made.body).unwrap()
    };
    let mark = json!({ "type": "ephemeral" });
    let block =
        json!({ "type": "compaction", "content": "It said \"old\".", "cache_control": mark });
    let text = |text: &str| json!({ "type": "text", "text": text });
    for rest in [vec![], vec![text("Then.")]] {
        let blocks = [vec![text("Before."), block.clone()], rest.clone()].concat();
        let body = out(&json!(blocks));
        let messages = body["messages"].as_array().unwrap();
        assert_eq!(messages.len(), 2 + rest.len(), "{body}");
        let summary = &messages[0]["content"][0];
        assert!(summary["text"].as_str().unwrap().contains("It said \"old\"."), "{body}");
        assert_eq!((&summary["cache_control"], &messages[0]["role"]), (&mark, &json!("user")));
        assert!(
            !body.to_string().contains("Old.") && !body.to_string().contains("Before."),
            "{body}"
        );
        assert!(rest.is_empty() || messages[1]["content"] == json!(rest), "{body}");
    }
    let failed = json!([{ "type": "compaction", "content": null }, text("Then.")]);
    assert_eq!(out(&failed)["messages"], compacted(&failed)["messages"]);
}

#[test]
fn a_request_over_the_trigger_asks_for_a_compaction() {
    let route = route("POST", "/v1/messages").unwrap();
    let asked = |edit: Value| {
        let text = body(&json!([edit])).to_string();
        context_compaction(&Request::parse(&route, &text).unwrap())
    };
    let over = json!({ "type": "input_tokens", "value": 100 });
    let edit = |more: Value| {
        let mut edit = json!({ "type": "compact_20260112", "trigger": over });
        edit.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        edit
    };
    let found = asked(edit(json!({}))).unwrap();
    assert_eq!(found, ContextCompaction { instructions: None, pauses: false });
    let found = asked(edit(json!({ "instructions": "Names.", "pause_after_compaction": true })));
    let expected = ContextCompaction { instructions: Some("Names.".into()), pauses: true };
    assert_eq!(found, Some(expected));
    assert_eq!(asked(json!({ "type": "compact_20260112" })), None, "under the default trigger");
    assert_eq!(asked(json!({ "type": "clear_thinking_20251015", "trigger": over })), None);

    // The next request has the compaction, and is as small as what stands after it.
    let text = body(&json!([edit(json!({}))])).to_string();
    let request = Request::parse(&route, &text).unwrap();
    let next = with_compaction(&request, "The summary.").unwrap();
    assert_eq!(context_compaction(&Request::parse(&route, &next).unwrap()), None);
}

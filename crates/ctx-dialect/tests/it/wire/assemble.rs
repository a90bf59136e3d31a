//! Bodies with a changed history.

use ctx_core::{Block, Message, Role};
use ctx_dialect::wire::OutgoingUnit;

use super::{all_unchanged, parse};

fn shorter(message: &Message, text: &str) -> Message {
    let mut message = message.clone();
    for block in &mut message.blocks {
        match block {
            Block::Text { text: old } => *old = text.to_owned(),
            Block::ToolResult(result) => result.content = vec![Block::text(text)],
            _ => {}
        }
    }
    message
}

/// Returns the body with unit `n` shortened and all others unchanged.
fn with_shorter(name: &str, body: &str, n: usize) -> String {
    let request = parse(name, body);
    let message = shorter(&request.units[n].read(), "cut");
    let mut out = all_unchanged(&request);
    out[n] = OutgoingUnit::Message { message: &message, of: Some(n) };
    request.with_history(&out, None).expect("known units").into_owned()
}

#[test]
fn only_the_words_of_a_chat_message_change() {
    let body = r#"{"x":1.50,"messages":[{"role":"user","name":"ann","content":[{"type":"text","text":"long","cache_control":{"type":"ephemeral","ttl":"1h"}}]},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{ }"},"extra_content":{"google":{"thought_signature":"s"}}}],"refusal":null},{"role":"tool","tool_call_id":"c","content":"long","odd":1}],"stream":true}"#;
    assert_eq!(with_shorter("chat", body, 0), body.replacen("long", "cut", 1));
    assert_eq!(
        with_shorter("chat", body, 2),
        body.replace(r#""content":"long""#, r#""content":"cut""#)
    );
}

#[test]
fn only_the_words_of_an_anthropic_message_change() {
    let body = r#"{"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],"context_management":{"edits":[]},"thinking":{"type":"adaptive"},"messages":[
{"role":"user","content":"long"}, {"role":"system","content":"odd place"},
{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"Eq"},{"type":"tool_use","id":"toolu_1","name":"f","input":{"a" : 1.50},"caller":{"type":"direct"}}]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"long","is_error":false,"cache_control":{"type":"ephemeral","ttl":"1h"}}]}],"metadata":{"user_id":"u"}}"#;
    let request = parse("messages", body);
    let raws: Vec<_> = request.units.iter().map(|unit| unit.raw).collect();
    let cut = |n: usize, to: &str| {
        let mut all = raws.clone();
        all[n] = to;
        let (before, after) = (r#""messages":["#, r#"],"metadata""#);
        let start = body.find(before).unwrap() + before.len();
        let end = body.find(after).unwrap();
        format!("{}{}{}", &body[..start], all.join(","), &body[end..])
    };
    assert_eq!(with_shorter("messages", body, 0), cut(0, r#"{"role":"user","content":"cut"}"#));
    let result = raws[3].replace("long", "cut");
    assert_eq!(with_shorter("messages", body, 3), cut(3, &result));
    // An answer that is equal except for its list is sent unchanged.
    assert_eq!(with_shorter("messages", body, 2), cut(2, raws[2]));
}

#[test]
fn a_cache_mark_moves_to_the_last_block_of_the_new_content() {
    let body = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"url","url":"https://x"},"cache_control":{"type":"ephemeral","ttl":"1h"}}]}]}"#;
    let request = parse("messages", body);
    for message in [Message::text(Role::User, "new"), Message::text(Role::CompactionSummary, "new")]
    {
        let out = request
            .with_history(&[OutgoingUnit::Message { message: &message, of: Some(0) }], None)
            .unwrap();
        assert_eq!(out.matches("cache_control").count(), 1);
        assert!(out.ends_with(r#","cache_control":{"type":"ephemeral","ttl":"1h"}}]}]}"#), "{out}");
    }
}

#[test]
fn messages_that_became_adjacent_are_merged() {
    let body = r#"{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":[{"type":"text","text":"c", "cache_control":{"type":"ephemeral"}}]},{"role":"assistant","content":"d"},{"role":"user","content":"e"},{"role":"user","content":"f"}]}"#;
    let request = parse("messages", body);
    let list = |out: &[OutgoingUnit<'_>]| {
        let body = request.with_history(out, None).unwrap().into_owned();
        let list = body.strip_prefix(r#"{"messages":["#).and_then(|body| body.strip_suffix("]}"));
        list.unwrap().to_owned()
    };
    // Messages that the client itself put side by side stay separate.
    assert_eq!(
        list(&[
            OutgoingUnit::Unchanged(0),
            OutgoingUnit::Unchanged(2),
            OutgoingUnit::Unchanged(3),
            OutgoingUnit::Unchanged(4),
            OutgoingUnit::Unchanged(5)
        ]),
        r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"c", "cache_control":{"type":"ephemeral"}}]},{"role":"assistant","content":"d"},{"role":"user","content":"e"},{"role":"user","content":"f"}"#
    );
    // A history cut at an answer still begins with a user message.
    let cut = list(&[OutgoingUnit::Unchanged(3), OutgoingUnit::Unchanged(4)]);
    assert!(cut.starts_with(r#"{"role":"user","content":[{"type":"text","text":"[ctx] earlier"#));
    let summary = Message::text(Role::CompactionSummary, "they spoke");
    let cut = list(&[
        OutgoingUnit::Message { message: &summary, of: None },
        OutgoingUnit::Unchanged(2),
        OutgoingUnit::Unchanged(3),
    ]);
    assert_eq!(cut.matches(r#""role":"user""#).count(), 1);
    assert!(cut.contains("they spoke") && cut.contains("cache_control"));
    // The message between the two answers was dropped.
    assert!(list(&[OutgoingUnit::Unchanged(0), OutgoingUnit::Unchanged(1), OutgoingUnit::Unchanged(3)]).contains(
        r#"{"role":"assistant","content":[{"type":"text","text":"b"},{"type":"text","text":"d"}]}"#
    ));
}

#[test]
fn reasoning_is_not_moved_into_another_answer() {
    let body = r#"{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"Eq"},{"type":"text","text":"d"}]}]}"#;
    let request = parse("messages", body);
    let out = request
        .with_history(
            &[OutgoingUnit::Unchanged(0), OutgoingUnit::Unchanged(1), OutgoingUnit::Unchanged(3)],
            None,
        )
        .unwrap();
    assert!(out.contains("left out") && out.contains(request.units[3].raw), "{out}");
}

#[test]
fn a_message_inserted_between_a_call_and_its_result_follows_the_result() {
    let recalled = Message::text(Role::User, "recalled");
    let written = OutgoingUnit::Message { message: &recalled, of: None };
    let body = r#"{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"r"},{"type":"text","text":"go on"}]}]}"#;
    let request = parse("messages", body);
    let out = request
        .with_history(
            &[
                OutgoingUnit::Unchanged(0),
                OutgoingUnit::Unchanged(1),
                written,
                OutgoingUnit::Unchanged(2),
            ],
            None,
        )
        .unwrap();
    assert!(out.ends_with(r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"r"},{"type":"text","text":"recalled"},{"type":"text","text":"go on"}]}]}"#), "{out}");
    let body = r#"{"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}},"thoughtSignature":"s"}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"r"}}},{"text":"go on"}]}]}"#;
    let request = parse("gemini", body);
    let out = request
        .with_history(
            &[
                OutgoingUnit::Unchanged(0),
                OutgoingUnit::Unchanged(1),
                written,
                OutgoingUnit::Unchanged(2),
            ],
            None,
        )
        .unwrap();
    assert!(out.ends_with(r#"{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"r"}}},{"text":"recalled"},{"text":"go on"}]}]}"#), "{out}");
}

#[test]
fn only_the_words_of_an_item_change() {
    let body = r#"{"instructions":"i","input":[{"type":"message","id":"m","role":"user","content":[{"type":"input_text","text":"long"}]},{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"gAAAAA"} , {"type":"custom_tool_call","id":"ctc","call_id":"c","name":"patch","input":"long"},{"type":"custom_tool_call_output","call_id":"c","output":"long"},{"type":"function_call_output","call_id":"d","output":[{"type":"input_text","text":"long"}]}],"store":false}"#;
    let first = body.replacen("long", "cut", 1);
    assert_eq!(with_shorter("responses", body, 0), first);
    let third = body.replace(r#""c","output":"long""#, r#""c","output":"cut""#);
    assert_eq!(with_shorter("responses", body, 2), third);
    let fourth = body.replace(r#"text":"long"}]}],"store"#, r#"text":"cut"}]}],"store"#);
    assert_eq!(with_shorter("responses", body, 3), fourth);
}

#[test]
fn reasoning_and_its_item_are_dropped_together() {
    let body = r#"{"input":[{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"gAAAAA"},{"type":"message","id":"msg","role":"assistant","content":[{"type":"output_text","text":"a"}]},{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":"{}"}]}"#;
    let request = parse("responses", body);
    let all = (*request.units[0].read()).clone();
    let put = |blocks: &[usize]| {
        let blocks = blocks.iter().map(|n| all.blocks[*n].clone()).collect();
        let message = Message { blocks, ..all.clone() };
        request
            .with_history(&[OutgoingUnit::Message { message: &message, of: Some(0) }], None)
            .unwrap()
            .into_owned()
    };
    assert_eq!(put(&[0, 1, 2]), body);
    // Without its reasoning, the item loses the id that refers to it.
    assert_eq!(
        put(&[2]),
        r#"{"input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]}"#
    );
    assert_eq!(put(&[0]), r#"{"input":[]}"#);
}

#[test]
fn only_the_words_of_a_gemini_content_change() {
    let body = r#"{"contents":[{"role":"user","parts":[{"text":"long"}]},{"role":"model","parts":[{"text":"t","thought":true},{"functionCall":{"name":"f","args":{}},"thoughtSignature":"s"}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"long"},"scheduling":"SILENT"}}]}],"safetySettings":[]}"#;
    assert_eq!(with_shorter("gemini", body, 0), body.replacen("long", "cut", 1));
    assert_eq!(with_shorter("gemini", body, 1), body);
    let last = body.replace(r#""output":"long""#, r#""output":"cut""#);
    assert_eq!(with_shorter("gemini", body, 2), last);
}

#[test]
fn a_plain_text_becomes_a_list_when_something_is_added() {
    let request = parse("responses", r#"{"input":"hi é","x":1}"#);
    assert_eq!(request.with_history(&[OutgoingUnit::Unchanged(0)], None).unwrap(), request.body());
    let summary = Message::text(Role::User, "s");
    let out = request.with_history(
        &[OutgoingUnit::Message { message: &summary, of: None }, OutgoingUnit::Unchanged(0)],
        None,
    );
    assert_eq!(
        out.unwrap(),
        r#"{"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"s"}]},{"role":"user","content":"hi é"}],"x":1}"#
    );
}

#[test]
fn images_of_a_result_do_not_separate_it_from_the_next_result() {
    let body = r#"{"messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"1"},{"role":"tool","tool_call_id":"b","content":"2"},{"role":"user","content":"u"}]}"#;
    let request = parse("chat", body);
    let mut message = (*request.units[1].read()).clone();
    if let Block::ToolResult(result) = &mut message.blocks[0] {
        let data = "aGk=".into();
        let image = ctx_core::Image { mime_type: "image/png".into(), data, is_url: false };
        result.content.push(Block::Image(image));
    }
    let out = [
        OutgoingUnit::Unchanged(0),
        OutgoingUnit::Message { message: &message, of: Some(1) },
        OutgoingUnit::Unchanged(2),
        OutgoingUnit::Unchanged(3),
    ];
    let out = request.with_history(&out, None).unwrap();
    let at = |text: &str| out.find(text).unwrap();
    assert!(at(r#""tool_call_id":"a""#) < at(r#""tool_call_id":"b""#));
    assert!(at(r#""tool_call_id":"b""#) < at("image_url"), "{out}");
}

#[test]
fn an_addition_follows_the_system_prompt() {
    for (name, body, expected) in [
        (
            "chat",
            r#"{"messages":[{"role":"system","content":"a"},{"role":"user","content":"u"}]}"#,
            r#"{"messages":[{"role":"system","content":"a\n\nmore"},{"role":"user","content":"u"}]}"#,
        ),
        (
            "chat",
            r#"{"messages":[{"role":"developer","content":[{"type":"text","text":"a"}]}]}"#,
            r#"{"messages":[{"role":"developer","content":[{"type":"text","text":"a"},{"type":"text","text":"more"}]}]}"#,
        ),
        (
            "chat",
            r#"{"messages":[{"role":"user","content":"u"}]}"#,
            r#"{"messages":[{"role":"system","content":"more"},{"role":"user","content":"u"}]}"#,
        ),
        ("messages", r#"{"system":"a","messages":[]}"#, r#"{"system":"a\n\nmore","messages":[]}"#),
        ("messages", r#"{"messages":[],"x":1}"#, r#"{"messages":[],"system":"more","x":1}"#),
        (
            "messages",
            r#"{"messages":[], "system":[{"type":"text","text":"a"}]}"#,
            r#"{"messages":[], "system":[{"type":"text","text":"a"},{"type":"text","text":"more"}]}"#,
        ),
        (
            "responses",
            r#"{"instructions":null,"input":"x"}"#,
            r#"{"instructions":"more","input":"x"}"#,
        ),
        (
            "gemini",
            r#"{"system_instruction":{"role":"user","parts":[{"text":"a"}]},"contents":[]}"#,
            r#"{"system_instruction":{"role":"user","parts":[{"text":"a"},{"text":"more"}]},"contents":[]}"#,
        ),
        (
            "gemini",
            r#"{"contents":[]}"#,
            r#"{"contents":[],"systemInstruction":{"parts":[{"text":"more"}]}}"#,
        ),
    ] {
        let request = parse(name, body);
        assert_eq!(request.with_history(&all_unchanged(&request), Some("more")).unwrap(), expected);
        assert_eq!(request.with_history(&all_unchanged(&request), Some(" ")).unwrap(), body);
    }
}

#[test]
fn a_unit_that_is_not_there_is_an_error() {
    let request = parse("chat", r#"{"messages":[]}"#);
    assert!(request.with_history(&[OutgoingUnit::Unchanged(0)], None).is_err());
    let message = Message::text(Role::User, "x");
    assert!(
        request
            .with_history(&[OutgoingUnit::Message { message: &message, of: Some(3) }], None)
            .is_err()
    );
}

/// Returns the body with one unit's message changed.
fn with_changed(name: &str, body: &str, n: usize, change: impl Fn(&mut Vec<Block>)) -> String {
    let request = parse(name, body);
    let mut message = (*request.units[n].read()).clone();
    change(&mut message.blocks);
    let mut out = all_unchanged(&request);
    out[n] = OutgoingUnit::Message { message: &message, of: Some(n) };
    request.with_history(&out, None).expect("known units").into_owned()
}

#[test]
fn a_call_is_sent_with_the_reasoning_before_it() {
    let answer = r#"[{"type":"thinking","thinking":"t","signature":"Eq"},{"type":"redacted_thinking","data":"zz"},{"type":"text","text":"long"},{"type":"tool_use","id":"a","name":"f","input":{}}]"#;
    let body = |thinking: &str| {
        format!(
            r#"{{{thinking}"messages":[{{"role":"user","content":"u"}},{{"role":"assistant","content":{answer}}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"a","content":"r"}}]}}]}}"#
        )
    };
    let only_call = |blocks: &mut Vec<Block>| blocks.retain(|b| matches!(b, Block::ToolCall(_)));
    let thinks =
        with_changed("messages", &body(r#""thinking":{"type":"adaptive"},"#), 1, only_call);
    assert!(thinks.contains(&answer.replace(r#"{"type":"text","text":"long"},"#, "")), "{thinks}");
    let plain = with_changed("messages", &body(""), 1, only_call);
    assert!(!plain.contains("thinking"), "{plain}");
    // An answer of only reasoning is dropped.
    let no_answer = with_changed("messages", &body(""), 1, |blocks| blocks.truncate(2));
    assert!(!no_answer.contains("assistant"), "{no_answer}");
}

#[test]
fn results_of_the_providers_own_tools_stay_behind_their_calls() {
    let body = r#"{"messages":[{"role":"user","content":"u"},{"role":"assistant","content":"a"},{"role":"user","content":"v"},{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"s","content":[]}]}]}"#;
    let request = parse("messages", body);
    let out = request
        .with_history(
            &[OutgoingUnit::Unchanged(0), OutgoingUnit::Unchanged(1), OutgoingUnit::Unchanged(3)],
            None,
        )
        .unwrap();
    let at = |text: &str| out.find(text).unwrap();
    assert!(at(r#""text":"a""#) < at("server_tool_use"), "{out}");
    assert!(at("server_tool_use") < at("web_search_tool_result"), "{out}");
}

#[test]
fn an_inserted_result_keeps_the_id_of_its_unchanged_call() {
    let body = r#"{"messages":[{"role":"user","content":"u"},{"role":"assistant","content":[{"type":"tool_use","id":"functions.read:0","name":"f","input":{}}]}]}"#;
    let request = parse("messages", body);
    let stand_in = Message::tool_result("functions.read:0", "none");
    let written = OutgoingUnit::Message { message: &stand_in, of: None };
    let out = request
        .with_history(&[OutgoingUnit::Unchanged(0), OutgoingUnit::Unchanged(1), written], None)
        .unwrap();
    assert!(out.contains(r#""tool_use_id":"functions.read:0""#), "{out}");
}

#[test]
fn encrypted_reasoning_without_text_stays_with_its_call() {
    let body = r#"{"messages":[{"role":"assistant","content":"long","reasoning_details":[{"type":"reasoning.encrypted","data":"x"}],"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}]}"#;
    assert_eq!(with_shorter("chat", body, 0), body.replace("long", "cut"));
}

#[test]
fn tools_with_their_own_item_types_keep_them() {
    let body = r#"{"input":[{"type":"apply_patch_call","id":"apc","call_id":"p","operation":{"type":"update_file","diff":"long"}},{"type":"apply_patch_call_output","call_id":"p","status":"completed","output":"long"},{"type":"tool_search_call","call_id":"t","arguments":{"q":1}},{"type":"tool_search_output","call_id":"t","tools":[{"name":"x"}]},{"type":"computer_call","call_id":"c","action":{"type":"screenshot"}},{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","image_url":"data:,"}}]}"#;
    let request = parse("responses", body);
    let units: Vec<_> = request.units.iter().map(|unit| (*unit.read()).clone()).collect();
    let calls: Vec<_> = units.iter().flat_map(|unit| unit.tool_calls()).collect();
    let ids = |of: &[&str]| of.iter().map(|id| (*id).into()).collect::<Vec<ctx_core::CallId>>();
    assert_eq!(calls.iter().map(|call| call.id.clone()).collect::<Vec<_>>(), ids(&["p", "t", "c"]));
    let results: Vec<_> = units.iter().flat_map(|unit| unit.tool_results()).collect();
    assert_eq!(
        results.iter().map(|r| r.call_id.clone()).collect::<Vec<_>>(),
        ids(&["p", "t", "c"])
    );
    assert_eq!(
        with_shorter("responses", body, 1),
        body.replace(r#""output":"long""#, r#""output":"cut""#)
    );
    for n in [3, 5] {
        assert_eq!(with_shorter("responses", body, n), body);
    }
}

#[test]
fn gemini_calls_without_ids_are_distinguished() {
    let part = |name: &str, n: u8| format!(r#"{{"{name}":{{"name":"read","args":{{"n":{n}}}}}}}"#);
    let response = |n: u8| {
        format!(
            r#"{{"functionResponse":{{"id":"read-{n}","name":"read","response":{{"output":"long"}}}}}}"#
        )
    };
    for call in ["functionCall", "function_call"] {
        let body = format!(
            r#"{{"contents":[{{"role":"user","parts":[{{"text":"u"}}]}},{{"role":"model","parts":[{},{}]}},{{"role":"user","parts":[{},{}]}}]}}"#,
            part(call, 1),
            part(call, 2),
            response(1),
            response(2)
        );
        let request = parse("gemini", &body);
        let calls = request.units[1].read();
        let results = request.units[2].read();
        let calls: Vec<_> = calls.tool_calls().map(|call| call.id.clone()).collect();
        let results: Vec<_> = results.tool_results().map(|result| result.call_id.clone()).collect();
        assert_eq!((calls.len(), &calls), (2, &results));
        assert_ne!(calls[0], calls[1]);
        let cut = with_changed("gemini", &body, 2, |blocks| {
            if let Block::ToolResult(result) = &mut blocks[1] {
                result.content = vec![Block::text("cut")];
            }
        });
        assert_eq!(cut, body.replace(&response(2), &response(2).replace("long", "cut")));
    }
}

#[test]
fn a_provider_compaction_replaces_everything_before_it() {
    let body = r#"{"input":[{"type":"compaction","id":"cmp","encrypted_content":"x"},{"role":"user","content":"u"},{"type":"reasoning","encrypted_content":"y","summary":[]},{"type":"mcp_approval_request","id":"m","name":"f","arguments":"{}"}]}"#;
    let request = parse("responses", body);
    assert_eq!(request.units.len(), 3);
    assert!(request.units[0].read().meta.pinned);
    assert_eq!(request.units[2].read().role, Role::Assistant);
}

#[test]
fn what_the_provider_ignores_has_no_units_and_stays_in_the_body() {
    let call = r#"{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}"#;
    let items = format!(
        r#"{{"input": [ {{"role":"user","content":"old"}}, {call} ,{{"type":"compaction","encrypted_content":"x"}}, {{"role":"user","content":"new"}} ]}}"#
    );
    let block = r#"{"role":"assistant","content":[{"type":"compaction","content":"s"},{"type":"text","text":"a"}]}"#;
    let messages = format!(
        r#"{{"messages": [{{"role":"user","content":"old"}} , {block}, {{"role":"user","content":"new"}} ]}}"#
    );
    for (api, body) in [("responses", items), ("messages", messages)] {
        let request = parse(api, &body);
        assert_eq!(request.units.len(), 2, "{api}");
        assert!(request.units[0].read().meta.pinned && !request.units[1].read().meta.pinned);
        let both = [OutgoingUnit::Unchanged(0), OutgoingUnit::Unchanged(1)];
        assert_eq!(request.with_history(&both, None).unwrap(), body);
        let text = Message::text(Role::User, "n2");
        let changed = OutgoingUnit::Message { message: &text, of: Some(1) };
        let out = request.with_history(&[both[0], changed], None).unwrap();
        let key = if api == "responses" { "input" } else { "messages" };
        let list =
            |body: &str| serde_json::from_str::<serde_json::Value>(body).unwrap()[key].take();
        let (mut expected, out) = (list(&body), list(&out));
        let last = expected.as_array().unwrap().len() - 1;
        expected[last]["content"] = "n2".into();
        assert_eq!(out, expected);
    }
    // The user's messages that a provider returns with its compaction are not ignored.
    let kept = r#"{"input":[{"role":"user","content":"u"},{"type":"compaction","encrypted_content":"x"}]}"#;
    assert_eq!(parse("responses", kept).units.len(), 2);
}

#[test]
fn a_prompt_stored_at_the_provider_has_no_history() {
    for body in [r#"{"prompt":{"id":"p"} }"#, r#"{"prompt":{"id":"p"},"input":null}"#, "{ }"] {
        let request = parse("responses", body);
        assert!(request.units.is_empty());
        assert_eq!(request.with_history(&[], None).unwrap(), body);
        let message = Message::text(Role::User, "s");
        let out = request
            .with_history(&[OutgoingUnit::Message { message: &message, of: None }], None)
            .unwrap();
        let value: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(value["input"].as_array().map(Vec::len), Some(1), "{out}");
    }
}

//! Bodies of all kinds, parsed.

use ctx_core::{ErrorKind, Role};
use ctx_dialect::wire::{Protocol, Request};

use super::{all_unchanged, parse, path};

#[test]
fn the_fields_of_a_request_are_read_in_each_api() {
    let chat = parse(
        "chat",
        r#"{"model":"gpt","stream":true,"max_tokens":5,"prompt_cache_key":"k","tools":[{"type":"function"}],
            "messages":[{"role":"system","content":"be kind"},{"role":"user","content":"hi"}]}"#,
    );
    assert_eq!(chat.model.as_deref(), Some("gpt"));
    assert!(chat.streams && chat.system.is_none() && chat.tools.is_some());
    assert_eq!((chat.max_tokens, chat.cache_key.as_deref()), (Some(5), Some("k")));
    let roles: Vec<_> = chat.units.iter().map(|unit| unit.read().role.clone()).collect();
    assert_eq!(roles, [Role::System, Role::User]);

    let messages = parse(
        "messages",
        r#"{"model":"c","max_tokens":9,"system":[{"type":"text","text":"a"},{"type":"text","text":"b","cache_control":{"type":"ephemeral"}}],"messages":[]}"#,
    );
    assert_eq!(messages.system.as_deref(), Some("a\nb"));
    assert!(!messages.streams && messages.units.is_empty());

    let gemini = parse(
        "gemini",
        r#"{"system_instruction":{"parts":[{"text":"s"}]},"generationConfig":{"maxOutputTokens":7},"contents":[{"parts":[{"text":"hi"}]}]}"#,
    );
    assert_eq!(gemini.model.as_deref(), Some("gemini-2.5-pro"));
    assert_eq!((gemini.system.as_deref(), gemini.max_tokens), (Some("s"), Some(7)));
    assert_eq!(gemini.units[0].read().plain_text(), "hi");

    let responses =
        parse("responses", r#"{"instructions":"s","input":"hi","max_output_tokens":3}"#);
    assert_eq!((responses.system.as_deref(), responses.max_tokens), (Some("s"), Some(3)));
    assert_eq!(responses.units[0].read().plain_text(), "hi");
    assert_eq!(responses.units[0].read().role, Role::User);
}

#[test]
fn the_items_of_one_answer_are_one_unit() {
    let body = r#"{"input":[
        {"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]},
        {"type":"reasoning","summary":[],"encrypted_content":"gAAAAA"} ,
        {"type":"message","role":"assistant","content":[{"type":"output_text","text":"ok"}]},
        {"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},
        {"type":"function_call","call_id":"c2","name":"f","arguments":"{}"},
        {"type":"function_call_output","call_id":"c1","output":"1"},
        {"type":"function_call_output","call_id":"c2","output":"2"},
        {"role":"assistant","content":"done"}
    ]}"#;
    let request = parse("responses", body);
    let units: Vec<_> = request.units.iter().map(|unit| (*unit.read()).clone()).collect();
    let roles: Vec<_> = units.iter().map(|unit| unit.role.name().to_owned()).collect();
    assert_eq!(roles, ["user", "assistant", "toolResult", "toolResult", "assistant"]);
    assert_eq!(units[1].blocks.len(), 4);
    assert_eq!(units[1].tool_calls().count(), 2);
    assert!(request.units[1].raw.starts_with(r#"{"type":"reasoning""#));
    assert!(request.units[1].raw.ends_with(r#""c2","name":"f","arguments":"{}"}"#));
    assert!(!request.is_continued);
}

#[test]
fn a_history_stored_at_the_provider_is_distinguished_from_a_complete_one() {
    for body in [
        r#"{"previous_response_id":"resp_1","input":"hi"}"#,
        r#"{"conversation":"conv_1","input":[]}"#,
        r#"{"input":[{"type":"item_reference","id":"msg_1"}]}"#,
    ] {
        assert!(parse("responses", body).is_continued, "{body}");
    }
    assert!(!parse("responses", r#"{"previous_response_id":null,"input":"hi"}"#).is_continued);
    for thread in [r#"{"type":"create"}"#, r#"{"type":"continue","previous_message_id":"m"}"#] {
        let body = format!(r#"{{"messages":[],"thread":{thread}}}"#);
        assert!(parse("messages", &body).is_continued, "{body}");
    }
    // An unknown field, in any API.
    let body = r#"{"messages":[{"role":"user","content":"hi"}],"previous_turn_id":"t"}"#;
    assert!(parse("chat", body).is_continued);
    assert!(!parse("chat", r#"{"messages":[],"session_id":"s"}"#).is_continued);
}

#[test]
fn an_invalid_request_is_a_clear_error() {
    let deep = format!("{}1{}", "[".repeat(200_000), "]".repeat(200_000));
    for protocol in Protocol::ALL {
        let name = protocol.name();
        for body in [
            "",
            "null",
            "[]",
            "{",
            "{} x",
            "\u{0}",
            "{\"messages\":5,\"input\":5,\"contents\":5}",
            &deep,
        ] {
            let error = Request::parse(&path(name), body).expect_err("no request");
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name} {error}");
            assert!(error.hint_text().is_some());
        }
        let twice =
            r#"{"messages":[],"messages":[],"input":[],"input":[],"contents":[],"contents":[]}"#;
        let error = Request::parse(&path(name), twice).expect_err("a duplicate field");
        assert!(error.to_string().contains("duplicate field"), "{error}");
    }
}

#[test]
fn large_and_unusual_bodies_are_passed_through() {
    let many = vec![r#"{"role":"user","content":"x"}"#; 100_000].join(",");
    let long = "x".repeat(50 << 20);
    let deep = format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    let bodies = [
        format!(r#"{{"messages":[{many}]}}"#),
        format!(r#"{{"messages":[{{"role":"user","content":"{long}"}}]}}"#),
        format!(r#"{{"messages":[{deep},5,null,[],"x"]}}"#),
        r#"{"messages":[{"role":"user","content":"\ud800"},{"\udfff":1}], "m\u0065ssage":1}"#
            .into(),
    ];
    for body in &bodies {
        for name in ["chat", "messages"] {
            let request = parse(name, body);
            assert_eq!(
                request.with_history(&all_unchanged(&request), None).unwrap(),
                body.as_str()
            );
        }
    }
    let odd = parse("chat", &bodies[2]);
    let roles: Vec<_> = odd.units.iter().map(|unit| unit.read().role.name().to_owned()).collect();
    assert_eq!(roles, ["unknown"; 5]);
}

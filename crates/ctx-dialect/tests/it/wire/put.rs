//! Bodies with another history.

use ctx_core::{Block, Message, Role};
use ctx_dialect::wire::Out;

use super::{all_told, take};

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

/// The body with the unit `n` shorter and all others as they came.
fn with_shorter(name: &str, body: &str, n: usize) -> String {
    let request = take(name, body);
    let message = shorter(&request.units[n].read(), "cut");
    let mut out = all_told(&request);
    out[n] = Out::Written { message: &message, of: Some(n) };
    request.put(&out, None).expect("units that are there").into_owned()
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
fn an_addition_stands_after_what_the_system_says() {
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
    ] {
        let request = take(name, body);
        assert_eq!(request.put(&all_told(&request), Some("more")).unwrap(), expected);
        assert_eq!(request.put(&all_told(&request), Some(" ")).unwrap(), body);
    }
}

#[test]
fn a_unit_that_is_not_there_is_an_error() {
    let request = take("chat", r#"{"messages":[]}"#);
    assert!(request.put(&[Out::Told(0)], None).is_err());
    let message = Message::text(Role::User, "x");
    assert!(request.put(&[Out::Written { message: &message, of: Some(3) }], None).is_err());
}

//! Calls and results with ambiguous ids in the body.

use ctx_core::{Block, Message, Role};
use ctx_dialect::wire::OutgoingUnit;

use super::{all_unchanged, parse};

/// Returns the messages of a history. Checks that each call has its result, and each result its
/// call.
fn paired(name: &str, body: &str) -> Vec<Message> {
    let request = parse(name, body);
    let messages: Vec<_> = request.units.iter().map(|unit| (*unit.read()).clone()).collect();
    ctx_core::check_pairs(&messages).unwrap_or_else(|error| panic!("{error}: {messages:#?}"));
    assert_eq!(request.with_history(&all_unchanged(&request), None).expect("known units"), body);
    messages
}

fn contents(contents: &[&str]) -> String {
    format!(r#"{{"contents":[{{"role":"user","parts":[{{"text":"u"}}]}},{}]}}"#, contents.join(","))
}

fn chat(messages: &[&str]) -> String {
    format!(r#"{{"messages":[{{"role":"user","content":"u"}},{}]}}"#, messages.join(","))
}

/// Returns the results of a history, with their texts.
fn results(messages: &[Message]) -> Vec<(String, String)> {
    let text = |blocks: &[Block]| Message::new(Role::User, blocks.to_vec()).plain_text();
    let results = messages.iter().flat_map(Message::tool_results);
    results.map(|result| (result.call_id.to_string(), text(&result.content))).collect()
}

#[test]
fn gemini_calls_with_and_without_ids_are_matched_in_one_history() {
    let without = [
        r#"{"role":"model","parts":[{"functionCall":{"name":"read","args":{}}}]}"#,
        r#"{"role":"user","parts":[{"functionResponse":{"id":"read-1","name":"read","response":{"output":"X"}}}]}"#,
    ];
    let with = [
        r#"{"role":"model","parts":[{"functionCall":{"id":"abc","name":"read","args":{}}}]}"#,
        r#"{"role":"user","parts":[{"functionResponse":{"id":"abc","name":"read","response":{"output":"Y"}}}]}"#,
    ];
    let empty = [
        r#"{"role":"model","parts":[{"function_call":{"id":"","name":"read","args":{}}}]}"#,
        r#"{"role":"user","parts":[{"function_response":{"id":"read-7","name":"read","response":{"output":"Z"}}}]}"#,
    ];
    for order in [[without, with, empty], [with, without, empty], [empty, with, without]] {
        let messages = paired("gemini", &contents(&order.concat()));
        assert_eq!(results(&messages).len(), 3);
    }
}

#[test]
fn a_gemini_response_without_the_id_of_its_call_is_matched_by_name() {
    let messages = paired(
        "gemini",
        &contents(&[
            r#"{"role":"model","parts":[{"functionCall":{"id":"a","name":"read","args":{}}},{"functionCall":{"id":"b","name":"read","args":{}}},{"functionCall":{"name":"now","args":{}}}]}"#,
            r#"{"role":"user","parts":[{"functionResponse":{"name":"now","response":{"output":"3"}}},{"functionResponse":{"id":"b","name":"read","response":{"output":"2"}}},{"functionResponse":{"id":"made-up","name":"read","response":{"output":"1"}}}]}"#,
        ]),
    );
    let pair = |id: &str, text: &str| (id.to_owned(), text.to_owned());
    assert_eq!(results(&messages), [pair("now", "3"), pair("b", "2"), pair("a", "1")]);
}

#[test]
fn later_messages_do_not_change_how_a_message_is_read() {
    let first = [
        r#"{"role":"model","parts":[{"functionCall":{"name":"read","args":{}}}]}"#,
        r#"{"role":"user","parts":[{"functionResponse":{"id":"r","name":"read","response":{"output":"X"}}}]}"#,
    ];
    let more = r#"{"role":"model","parts":[{"functionCall":{"id":"r","name":"read","args":{}}}]}"#;
    let body = contents(&[first[0], first[1], more]);
    let request = parse("gemini", &body);
    let longer: Vec<_> = request.units[..3].iter().map(|unit| (*unit.read()).clone()).collect();
    assert_eq!(longer, paired("gemini", &contents(&first)));
}

#[test]
fn chat_calls_without_ids_or_under_one_id_keep_all_their_results() {
    for id in ["", "call_0"] {
        let call = |name: &str| {
            format!(
                r#"{{"id":"{id}","type":"function","function":{{"name":"{name}","arguments":"{{}}"}}}}"#
            )
        };
        let calls = format!(
            r#"{{"role":"assistant","content":null,"tool_calls":[{},{},{}]}}"#,
            call("read"),
            call("read"),
            call("now")
        );
        let result =
            |text: &str| format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"{text}"}}"#);
        let all = [calls.clone(), result("1"), result("2"), result("3")];
        let again = [calls, result("4"), result("4"), result("4")];
        let body = chat(&[&all[..], &again[..]].concat().iter().map(|s| &**s).collect::<Vec<_>>());
        let messages = paired("chat", &body);
        let texts: Vec<_> = results(&messages).into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["1", "2", "3", "4", "4", "4"]);

        // The output has the original ids, also in rewritten messages.
        let request = parse("chat", &body);
        let mut out = all_unchanged(&request);
        let stand_in = Message::tool_result(
            messages[3].tool_results().next().unwrap().call_id.clone(),
            "none",
        );
        out[3] = OutgoingUnit::Message { message: &stand_in, of: None };
        let written = request.with_history(&out, None).unwrap();
        assert_eq!(written, body.replace(&result("2"), &result("none")));
        let mut cut = messages[3].clone();
        if let Block::ToolResult(result) = &mut cut.blocks[0] {
            result.content = vec![Block::text("cut")];
        }
        out[3] = OutgoingUnit::Message { message: &cut, of: Some(3) };
        assert_eq!(
            request.with_history(&out, None).unwrap(),
            body.replace(&result("2"), &result("cut"))
        );
        let mut extended = messages[1].clone();
        extended.blocks.insert(0, Block::text("so"));
        out[3] = OutgoingUnit::Unchanged(3);
        out[1] = OutgoingUnit::Message { message: &extended, of: Some(1) };
        let written = request.with_history(&out, None).unwrap();
        assert_eq!(written, body.replacen(r#""content":null"#, r#""content":"so""#, 1));
    }
}

#[test]
fn old_chat_functions_are_matched_by_name() {
    paired(
        "chat",
        &chat(&[
            r#"{"role":"assistant","content":null,"tool_calls":null,"function_call":{"name":"read","arguments":"{}"}}"#,
            r#"{"role":"function","name":"read","content":"1"}"#,
            r#"{"role":"assistant","content":null,"tool_calls":[{"type":"function","function":{"name":"read","arguments":"{}"}}]}"#,
            r#"{"role":"function","name":"read","content":"2"}"#,
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":7,"type":"function","function":{"name":"read","arguments":"{}"}}]}"#,
            r#"{"role":"tool","tool_call_id":7,"content":"3"}"#,
        ]),
    );
}

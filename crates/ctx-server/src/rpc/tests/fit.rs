//! `fit`: only what changed goes in, the list to send comes out.

use serde_json::{Value, json};

use super::{Calls, kind, result, user};

fn open(format: &str, window: u64) -> Calls {
    let mut calls = Calls::default();
    calls.call("open", json!({ "sessionId": "s", "window": window, "format": format }));
    calls
}

fn fit(calls: &mut Calls, keep: usize, messages: &[Value]) -> usize {
    calls.s("fit", json!({ "keep": keep, "messages": messages }))
}

/// Returns the messages of an answer, with unchanged ones in their place.
fn fitted(answer: &Value, list: &[Value]) -> Vec<Value> {
    let messages = result(answer)["messages"].as_array().expect("messages");
    let own = |message: &Value| match message.as_u64() {
        Some(at) => list[at as usize].clone(),
        None => message.clone(),
    };
    messages.iter().map(own).collect()
}

/// The same turn of an agent that reads a file, in each format.
fn turn(format: &str, n: usize, text: &str) -> Vec<Value> {
    let (call, ask, say) = (format!("c{n}"), format!("read file {n}"), format!("it has {n}"));
    match format {
        "openai" => vec![
            json!({ "role": "user", "content": ask }),
            json!({ "role": "assistant", "content": null, "tool_calls": [{ "id": call,
                "type": "function", "function": { "name": "read", "arguments": "{}" } }] }),
            json!({ "role": "tool", "tool_call_id": call, "content": text }),
            json!({ "role": "assistant", "content": say }),
        ],
        "responses" => vec![
            json!({ "role": "user", "content": ask }),
            json!({ "type": "reasoning", "id": format!("rs_{n}"), "summary": [],
                "encrypted_content": "sealed" }),
            json!({ "type": "function_call", "id": format!("fc_{n}"), "call_id": call,
                "name": "read", "arguments": "{}" }),
            json!({ "type": "function_call_output", "call_id": call, "output": text }),
            json!({ "type": "message", "role": "assistant",
                "content": [{ "type": "output_text", "text": say }] }),
        ],
        "anthropic" => vec![
            json!({ "role": "user", "content": ask }),
            json!({ "role": "assistant", "content": [
                { "type": "tool_use", "id": call, "name": "read", "input": {} }] }),
            json!({ "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": call, "content": text }] }),
            json!({ "role": "assistant", "content": [{ "type": "text", "text": say }] }),
        ],
        "gemini" => vec![
            json!({ "role": "user", "parts": [{ "text": ask }] }),
            json!({ "role": "model", "parts": [{ "functionCall": { "name": "read", "args": {} } }] }),
            json!({ "role": "user", "parts": [{ "functionResponse":
                { "name": "read", "response": { "output": text } } }] }),
            json!({ "role": "model", "parts": [{ "text": say }] }),
        ],
        "ai-sdk" => vec![
            json!({ "role": "user", "content": [{ "type": "text", "text": ask }] }),
            json!({ "role": "assistant", "content": [{ "type": "tool-call", "toolCallId": call,
                "toolName": "read", "input": {}, "providerOptions": { "x": { "y": 1 } } }] }),
            json!({ "role": "tool", "content": [{ "type": "tool-result", "toolCallId": call,
                "toolName": "read", "output": { "type": "text", "value": text } }] }),
            json!({ "role": "assistant", "content": [{ "type": "text", "text": say }] }),
        ],
        _ => vec![
            json!({ "role": "user", "content": ask }),
            json!({ "role": "assistant", "content": [
                { "type": "toolCall", "id": call, "name": "read", "arguments": {} }] }),
            json!({ "role": "toolResult", "toolCallId": call, "toolName": "read",
                "content": [{ "type": "text", "text": text }] }),
            json!({ "role": "assistant", "content": [{ "type": "text", "text": say }] }),
        ],
    }
}

const FORMATS: [&str; 6] = ["pi", "openai", "responses", "anthropic", "gemini", "ai-sdk"];

#[test]
fn messages_that_fit_are_the_hosts_own_in_every_format() {
    for format in FORMATS {
        let list = [turn(format, 1, "short"), turn(format, 2, "short")].concat();
        let mut calls = open(format, 32_000);
        let half = list.len() / 2;
        let first = fit(&mut calls, 0, &list[..half]);
        let second = fit(&mut calls, half, &list[half..]);
        let answers = calls.end();
        for (at, count) in [(first, half), (second, list.len())] {
            let expected: Vec<_> = (0..count).collect();
            assert_eq!(result(&answers[at])["messages"], json!(expected), "{format}");
        }
        assert!(result(&answers[second])["unchangedPrefix"].as_u64().unwrap() > 0, "{format}");
    }
}

#[test]
fn a_conversation_over_its_window_is_cut_and_keeps_its_pairs_in_every_format() {
    for format in FORMATS {
        let big = "line of a file\n".repeat(800);
        let list: Vec<_> = (0..12).flat_map(|n| turn(format, n, &big)).collect();
        let per_turn = list.len() / 12;
        let mut calls = open(format, 16_000);
        let fits: Vec<_> = (0..12)
            .map(|n| fit(&mut calls, n * per_turn, &list[n * per_turn..(n + 1) * per_turn]))
            .collect();
        let answers = calls.end();
        for at in &fits {
            let request = result(&answers[*at]);
            assert!(request["tokens"].as_u64() <= request["limit"].as_u64(), "{format}");
        }
        let last = fitted(&answers[fits[11]], &list);
        assert!(last.len() <= list.len() && last != list, "{format}");
        // The newest question is there, and each call is next to its result.
        let text = serde_json::to_string(&last).unwrap();
        assert!(text.contains("read file 11"), "{format}");
        let names = |key: &str| text.matches(key).count();
        let (calls, results) = match format {
            "openai" => (names(r#""tool_calls""#), names(r#""tool_call_id""#)),
            "responses" => (names(r#""function_call""#), names(r#""function_call_output""#)),
            "anthropic" => (names(r#""tool_use""#), names(r#""tool_use_id""#)),
            "gemini" => (names(r#""functionCall""#), names(r#""functionResponse""#)),
            "ai-sdk" => (names(r#""tool-call""#), names(r#""tool-result""#)),
            _ => (names(r#""toolCall""#), names(r#""toolResult""#)),
        };
        assert!(calls > 0 && calls == results, "{format}: {calls} calls, {results} results");
        // Reasoning is refused without the call that follows it.
        for pair in last.windows(2).filter(|pair| pair[0]["type"] == "reasoning") {
            assert_eq!(pair[1]["type"], "function_call", "{format}");
        }
    }
}

#[test]
fn a_changed_message_is_noticed_and_a_gap_is_refused() {
    let list = [turn("openai", 1, "short"), turn("openai", 2, "short")].concat();
    let mut calls = open("openai", 32_000);
    fit(&mut calls, 0, &list);
    let mut edited = list.clone();
    edited[2]["content"] = "edited".into();
    let second = fit(&mut calls, 2, &edited[2..]);
    let gap = fit(&mut calls, 99, &[user("x")]);
    let after = fit(&mut calls, 8, &[user("x")]);
    let again = fit(&mut calls, 0, &edited);
    let answers = calls.end();
    assert_eq!(fitted(&answers[second], &edited), edited);
    assert_eq!([kind(&answers[gap]), kind(&answers[after])], ["conflict"; 2]);
    assert_eq!(fitted(&answers[again], &edited), edited);
}

#[test]
fn what_was_cut_can_be_read_again_and_a_compaction_undone() {
    let big = "the answer is 4711 in this file\n".repeat(300);
    let list: Vec<_> = (0..6).flat_map(|n| turn("openai", n, &big)).collect();
    let mut calls = open("openai", 64_000);
    fit(&mut calls, 0, &list);
    let compacted = calls.s("compact", json!({ "force": true, "tokenBudget": 4000 }));
    let less = fit(&mut calls, list.len(), &[user("and now?")]);
    let found = calls.s("recall", json!({ "query": "4711" }));
    let whole = calls.s("expand", json!({ "id": "[e:2]" }));
    let missing = calls.s("expand", json!({ "id": "zzz" }));
    let undone = calls.s("undo", json!({}));
    let all = fit(&mut calls, list.len() + 1, &[]);
    let answers = calls.end();
    assert_eq!(result(&answers[compacted])["compacted"], true);
    let sent = |at: usize| result(&answers[at])["messages"].as_array().unwrap().len();
    assert!(sent(less) < list.len());
    assert!(result(&answers[found])["found"][0].as_str().unwrap().contains("4711"));
    assert_eq!(result(&answers[whole])["messages"][0]["text"], big);
    assert_eq!(result(&answers[missing])["messages"][0]["text"], Value::Null);
    assert_eq!(result(&answers[undone])["undone"], true);
    assert_eq!(sent(all), list.len() + 1);
}

#[test]
fn a_format_of_lists_is_not_read_message_by_message() {
    for format in ["responses", "gemini"] {
        let mut calls = open(format, 32_000);
        let at = calls.s("append", json!({ "messages": turn(format, 1, "x") }));
        let answers = calls.end();
        assert_eq!(kind(&answers[at]), "invalidInput");
        let hint = answers[at]["error"]["data"]["hint"].as_str().unwrap();
        assert!(hint.contains("fit"), "{hint}");
    }
}

#[test]
fn a_new_system_prompt_takes_room() {
    let mut calls = open("anthropic", 32_000);
    let list = turn("anthropic", 1, "short");
    let first = fit(&mut calls, 0, &list);
    let second = calls.s(
        "fit",
        json!({ "keep": list.len(), "messages": [], "systemPrompt": "s".repeat(4000), "tools": [] }),
    );
    let answers = calls.end();
    let tokens = |at: usize| result(&answers[at])["tokens"].as_u64().unwrap();
    assert!(tokens(second) >= tokens(first) + 1000, "{} {}", tokens(first), tokens(second));
}

#[test]
fn results_whose_calls_the_provider_stores_are_sent_as_they_are() {
    for format in FORMATS {
        let at = if format == "responses" { 3 } else { 2 };
        let mut calls = open(format, 32_000);
        let stored = fit(&mut calls, 0, &turn(format, 1, "x")[at..=at]);
        let again = fit(&mut calls, 0, &turn(format, 2, "x")[at..=at]);
        let answers = calls.end();
        assert_eq!(result(&answers[stored])["messages"], json!([0]), "{format}");
        let warnings = |at: usize| result(&answers[at])["warnings"].to_string();
        assert!(warnings(stored).contains("the calls of the newest results are missing"));
        assert!(!warnings(again).contains("newest results"), "{format}");
    }
}

#[test]
fn what_is_not_a_message_is_refused_in_every_format() {
    for format in FORMATS {
        let mut calls = open(format, 32_000);
        let wrong: Vec<_> = [json!("a"), Value::Null, json!([1])]
            .into_iter()
            .chain((format != "responses").then(|| json!({ "content": "x" })))
            .map(|message| fit(&mut calls, 0, &[message]))
            .collect();
        let right = fit(&mut calls, 0, &turn(format, 1, "x"));
        let answers = calls.end();
        for at in wrong {
            assert_eq!(kind(&answers[at]), "invalidInput", "{format}");
        }
        result(&answers[right]);
    }
}

#[test]
fn messages_may_have_ids_of_the_host_if_each_is_a_message_of_its_own() {
    for format in FORMATS {
        let list = [turn(format, 1, "x"), turn(format, 2, "y")].concat();
        let (half, count) = (list.len() / 2, list.len());
        let named = |range: std::ops::Range<usize>| -> Vec<Value> {
            range.map(|n| if n == 1 { Value::Null } else { json!(format!("host-{n}")) }).collect()
        };
        let mut calls = open(format, 32_000);
        let both = |messages: &[Value], keep: usize, ids: Vec<Value>| json!({ "keep": keep, "messages": messages, "ids": ids });
        let first = calls.s("fit", both(&list[..half], 0, named(0..half)));
        let second = calls.s("fit", both(&list[half..], half, named(half..count)));
        let fewer = calls.s("fit", both(&list, 0, named(0..1)));
        let again = calls.s("fit", both(&list, 0, named(0..count)));
        let twice = calls.s("fit", both(&list[..2], 0, vec![json!("a"); 2]));
        let answers = calls.end();
        assert_eq!(kind(&answers[fewer]), "invalidInput", "{format}");
        if format == "responses" {
            assert_eq!(kind(&answers[first]), "invalidInput");
            continue;
        }
        for (at, count) in [(first, half), (second, count), (again, count)] {
            let mut expected = named(0..count);
            expected[1] = "00000000".into();
            assert_eq!(result(&answers[at])["ids"], json!(expected), "{format}");
        }
        assert_eq!(kind(&answers[twice]), "conflict", "{format}");
    }
}

#[test]
fn another_list_between_two_fits_is_not_taken_for_that_of_the_first() {
    for format in ["openai", "anthropic", "pi", "ai-sdk"] {
        let list = [turn(format, 1, "short"), turn(format, 2, "short")].concat();
        let other = turn(format, 3, "short");
        let mut calls = open(format, 32_000);
        fit(&mut calls, 0, &list);
        let synced = calls.s("sync", json!({ "messages": other }));
        let again = fit(&mut calls, list.len(), &other);
        let last = fit(&mut calls, list.len() + other.len(), &[]);
        let answers = calls.end();
        assert_eq!(result(&answers[synced])["removed"], list.len(), "{format}");
        let whole = [list.clone(), other].concat();
        for at in [again, last] {
            assert_eq!(fitted(&answers[at], &whole), whole, "{format}");
            let texts = result(&answers[at])["messages"].to_string();
            assert_eq!(texts, json!((0..whole.len()).collect::<Vec<_>>()).to_string(), "{format}");
        }
    }
}

#[test]
fn a_list_without_the_providers_compaction_is_compared_again() {
    let compaction = json!({ "role": "assistant", "content": [
        { "type": "compaction", "content": "what came before" }] });
    let list = [turn("anthropic", 1, "x"), vec![compaction], turn("anthropic", 2, "y")].concat();
    let mut calls = open("anthropic", 32_000);
    fit(&mut calls, 0, &list);
    let back = fit(&mut calls, 4, &[user("and now?")]);
    let expected = [list[..4].to_vec(), vec![user("and now?")]].concat();
    let mut fresh = open("anthropic", 32_000);
    let alone = fit(&mut fresh, 0, &expected);
    let (answers, fresh) = (calls.end(), fresh.end());
    assert_eq!(result(&answers[back])["tokens"], result(&fresh[alone])["tokens"]);
}

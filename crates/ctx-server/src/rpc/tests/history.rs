//! Sending a conversation incrementally and as a whole.

use serde_json::json;

use super::*;

fn messages(texts: &[&str]) -> Value {
    texts.iter().map(|text| user(text)).collect()
}

#[test]
fn a_repeated_message_is_stored_once() {
    let mut calls = Calls::open("legacy");
    let both = json!({ "messages": messages(&["one", "two"]), "ids": ["a", null] });
    let first = calls.s("append", both);
    // The same content as different JSON.
    let same = json!({ "content": [{ "type": "text", "text": "one" }], "role": "user" });
    let again = calls.s("append", json!({ "messages": [same, user("three")], "ids": ["a", "c"] }));
    let twice = calls.s("append", json!({ "messages": messages(&["4", "4"]), "ids": ["d", "d"] }));
    let assembled = calls.s("assemble", json!({}));
    let answers = calls.end();
    assert_eq!(result(&answers[first])["ids"], json!(["a", "00000000"]));
    assert_eq!(result(&answers[again])["ids"], json!(["a", "c"]));
    assert_eq!(result(&answers[twice])["ids"], json!(["d", "d"]));
    assert_eq!(texts(&answers[assembled]), ["one", "two", "three", "4"]);
    assert_eq!(result(&answers[assembled])["ids"], json!(["a", "00000000", "c", "d"]));
}

#[test]
fn a_refused_append_adds_nothing() {
    let mut calls = Calls::open("legacy");
    calls.s("append", json!({ "messages": messages(&["one"]), "ids": ["a"] }));
    for (messages, ids, expected) in [
        (messages(&["two", "other"]), json!(["b", "a"]), "conflict"),
        (messages(&["two", "other"]), json!(["b", "b"]), "conflict"),
        (messages(&["two", "three"]), json!(["b"]), "invalidInput"),
        (messages(&["two"]), json!([""]), "invalidInput"),
        (json!([user("two"), 5]), json!(null), "invalidInput"),
        (json!([user("two"), { "content": "no role" }]), json!(null), "invalidInput"),
    ] {
        let at = calls.s("append", json!({ "messages": messages, "ids": ids }));
        let status = calls.s("status", json!({}));
        let answers = Calls(calls.0.clone(), calls.1).end();
        assert_eq!(kind(&answers[at]), expected, "{}", answers[at]);
        assert_eq!(result(&answers[status])["messages"], 1);
    }
}

#[test]
fn generated_ids_avoid_given_ids() {
    let mut calls = Calls::open("legacy");
    let ids = json!([null, "00000000", null]);
    let at = calls.s("append", json!({ "messages": messages(&["1", "2", "3"]), "ids": ids }));
    let answers = calls.end();
    assert_eq!(result(&answers[at])["ids"], json!(["00000001", "00000000", "00000002"]));
}

#[test]
fn a_longer_list_only_adds_its_end() {
    let mut calls = Calls::open("legacy");
    let first = calls.s("sync", json!({ "messages": messages(&["one", "two"]) }));
    let grown = calls.s("sync", json!({ "messages": messages(&["one", "two", "three"]) }));
    let same = calls.s("sync", json!({ "messages": messages(&["one", "two", "three"]) }));
    let answers = calls.end();
    let figures = |at: usize| {
        let synced = result(&answers[at]);
        ["common", "kept", "added", "removed"].map(|key| synced[key].as_u64().unwrap_or(99))
    };
    assert_eq!(figures(first), [0, 0, 2, 0]);
    assert_eq!(figures(grown), [2, 0, 1, 0]);
    assert_eq!(figures(same), [3, 0, 0, 0]);
    assert_eq!(result(&answers[same])["ids"], json!(["00000000", "00000001", "00000002"]));
}

#[test]
fn an_edited_list_keeps_the_ids_of_remaining_messages() {
    let mut calls = Calls::open("legacy");
    calls.s("sync", json!({ "messages": messages(&["a", "b", "c", "d"]) }));
    let edited = calls.s("sync", json!({ "messages": messages(&["a", "d", "new", "c"]) }));
    let assembled = calls.s("assemble", json!({}));
    let cut = calls.s("sync", json!({ "messages": messages(&["a"]) }));
    let after = calls.s("assemble", json!({}));
    let empty = calls.s("sync", json!({ "messages": [] }));
    let nothing = calls.s("assemble", json!({}));
    let answers = calls.end();
    let synced = result(&answers[edited]);
    assert_eq!(synced["ids"], json!(["00000000", "00000003", "00000004", "00000002"]));
    assert_eq!((&synced["common"], &synced["kept"]), (&json!(1), &json!(2)));
    assert_eq!((&synced["added"], &synced["removed"]), (&json!(1), &json!(1)));
    assert_eq!(texts(&answers[assembled]), ["a", "d", "new", "c"]);
    assert_eq!(result(&answers[cut])["removed"], 3);
    assert_eq!(texts(&answers[after]), ["a"]);
    assert_eq!(result(&answers[empty])["removed"], 1);
    assert!(texts(&answers[nothing]).is_empty());
}

#[test]
fn sync_accepts_other_content_for_a_known_id() {
    let mut calls = Calls::open("legacy");
    let ids = json!(["x", "y"]);
    calls.s("sync", json!({ "messages": messages(&["one", "two"]), "ids": ids }));
    let edited = json!({ "messages": messages(&["one!", "two"]), "ids": ids });
    let edited = calls.s("sync", edited);
    let assembled = calls.s("assemble", json!({}));
    let twice = calls.s("sync", json!({ "messages": messages(&["1", "2"]), "ids": ["x", "x"] }));
    let back = calls.s("sync", json!({ "messages": messages(&["one!", "9"]), "ids": [null, "x"] }));
    let answers = calls.end();
    assert_eq!(result(&answers[edited])["kept"], 1);
    assert_eq!(texts(&answers[assembled]), ["one!", "two"]);
    assert_eq!(kind(&answers[twice]), "conflict");
    assert_eq!(kind(&answers[back]), "conflict");
}

#[test]
fn messages_are_returned_byte_for_byte() {
    let odd = r#"{"role":"user", "content":"\u00e9 \ud83d\ude00 שלום \u200b\u0000 \"q\"\\","x":1e3,"a":{"b":[ ]}}"#;
    let cut = r#"{"role":"user","content":"half a pair: \ud83d"}"#;
    for format in ["pi", "openai"] {
        let open = json!({
            "jsonrpc": "2.0", "id": 0, "method": "open",
            "params": { "sessionId": "s", "window": 32_000, "format": format },
        });
        let input = format!(
            "{open}\n{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"append\",\"params\":\
             {{\"sessionId\":\"s\",\"messages\":[{odd},{cut}]}}}}\r\n\
             {{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"assemble\",\"params\":\
             {{\"sessionId\":\"s\"}}}}\n"
        );
        let answers = exchange(input);
        let messages = &result(&answers[2])["messages"];
        assert_eq!(messages[0], serde_json::from_str::<Value>(odd).unwrap(), "{format}");
        assert_eq!(messages[1]["content"], "half a pair: \u{fffd}", "{format}");
    }
}

#[test]
fn a_long_conversation_is_cut_to_fit() {
    let text = "a sentence of some length, said over and over again. ".repeat(4);
    // Four times the window.
    let many = ctx_testkit::cases(10_000).max(2_500) as usize;
    let all: Vec<Value> = (0..many).map(|n| user(&format!("{n} {text}"))).collect();
    let mut calls = Calls::open("legacy");
    calls.s("sync", json!({ "messages": all }));
    let first = calls.s("assemble", json!({}));
    let again = calls.s("sync", json!({ "messages": all }));
    let second = calls.s("assemble", json!({}));
    let answers = calls.end();
    let answer = result(&answers[first]);
    assert!(answer["tokens"].as_u64() <= answer["limit"].as_u64());
    let texts = texts(&answers[first]);
    assert!(texts.last().is_some_and(|text| text.starts_with(&format!("{} ", many - 1))));
    assert!(texts.len() < many);
    assert_eq!(result(&answers[again])["common"], many);
    let second = result(&answers[second]);
    assert_eq!(second["messages"], answer["messages"]);
    assert_eq!(second["unchangedPrefix"], second["tokens"]);
    assert_eq!(second["acted"], json!([]));
}

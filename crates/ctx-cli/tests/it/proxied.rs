//! What compactions of the proxy's clients replaced.

use serde_json::{Value, json};

use crate::serve::{Served, provider};
use crate::support::Room;

const FACT: &str = "The heron of /src/river.rs has the number 4711.";

/// Returns the body of an answer.
fn body(answer: &str) -> Value {
    let (_, body) = answer.split_once("\r\n\r\n").expect("a head");
    let from = body.find('{').expect("an object");
    serde_json::from_str(body[from..].trim_end_matches(['0', '\r', '\n'])).expect(body)
}

#[test]
fn original_messages_of_a_clients_compaction_are_printed() {
    let (room, provider) = (Room::new(), provider([]));
    room.write("ctx.json5", "{ server: { summaries: 'extractive', compaction: 'ctx' } }");
    let none = room.ctx(&["compactions", "--proxy"]);
    assert!(none.code == Some(0) && none.stderr.contains("no client"), "{}", none.stderr);
    let said = |role: &str, text: &str| json!({ "role": role, "content": text });
    let history = [said("user", "Find the bird."), said("assistant", FACT)];
    let asked = json!({ "model": "m", "input": history }).to_string();
    let served = Served::start(&room, &["--upstream", &provider.v1()], &[]);
    let answer = body(&served.ask("POST /v1/responses/compact", &asked));
    let content = answer["output"][0]["encrypted_content"].as_str().expect("an item");

    let listed = room.json(&["compactions", "--proxy"]);
    let [one] = &listed.as_array().expect("a list")[..] else { panic!("{listed}") };
    assert_eq!((&one["messages"], &one["protocol"]), (&json!(2), &json!("responses")), "{listed}");
    assert!(one["timestamp"].is_i64() && one["session"].is_string(), "{listed}");
    let id = one["id"].as_str().expect("an id");
    let table = room.ctx(&["compactions", "--proxy"]);
    assert!(table.stdout.contains(&id[..8]), "{}", table.stdout);
    for named in [id, &id[..8], content] {
        let messages = room.json(&["expand", "--proxy", named]);
        assert_eq!(messages[0]["role"], "user", "{messages}");
        assert!(messages[1].to_string().contains(FACT), "{messages}");
    }
    let printed = room.ctx(&["expand", "--proxy", id]);
    assert!(printed.stdout.contains("assistant p2\n") && printed.stdout.contains(FACT));
}

#[test]
fn damaged_and_early_files_of_compactions_are_told_apart() {
    let room = Room::new();
    let file = |digit: &str| format!("proxy/compactions/{}.jsonl", digit.repeat(32));
    let block = json!({ "type": "tool_use", "id": "t", "name": "read", "input": { "path": "a" } });
    let items = json!([{ "role": "assistant", "content": [block] }]);
    let early = json!({ "session": null, "parent": null, "items": items }).to_string();
    room.write(&file("a"), &early);
    room.write(&file("b"), &early[..early.len() / 2]);
    let empty = json!({ "session": null, "parent": null, "items": [] });
    room.write(&file("c"), empty.to_string());
    let later = json!({ "session": null, "parent": "b".repeat(32), "items": items });
    room.write(&file("d"), later.to_string());

    let listed = room.ctx(&["compactions", "--proxy", "--json"]);
    assert_eq!(listed.code, Some(1), "{}", listed.stderr);
    assert!(listed.stderr.contains("damaged") && listed.stderr.contains("bbbb.jsonl"));
    let listed: Value = serde_json::from_str(&listed.stdout).expect("JSON");
    let found =
        listed.as_array().expect("a list").iter().map(|one| {
            (one["id"].as_str().expect("an id")[..1].to_owned(), one["protocol"].clone())
        });
    let mut found: Vec<_> = found.collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    let api = |digit: &str, api: Value| (digit.to_owned(), api);
    let expected = [("a", json!("messages")), ("c", Value::Null), ("d", json!("messages"))];
    assert_eq!(found, expected.map(|(digit, known)| api(digit, known)));

    let read = room.json(&["expand", "--proxy", "a"]);
    assert_eq!(read[0]["content"][0]["name"], "read", "{read}");
    let rest = room.ctx(&["expand", "--proxy", "d"]);
    assert!(rest.code == Some(0) && rest.stdout.contains("calls read"), "{}", rest.stderr);
    assert!(rest.stderr.contains("also covers earlier messages"), "{}", rest.stderr);
    room.refused(&["expand", "--proxy", "b"], "damaged");
    room.refused(&["expand", "--proxy", "c"], "no message is saved");
    room.refused(&["expand", "--proxy", "e"], "ctx compactions --proxy");
    room.misused(&["expand", "--proxy"], "--proxy");
    room.misused(&["expand"], "required");
    room.misused(&["expand", "session", "--proxy", "a"], "cannot be used with");
    room.misused(&["compactions"], "required");
}

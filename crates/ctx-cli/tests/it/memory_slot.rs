//! `plugins.slots.memory`: long-term memory with any engine.

use serde_json::{Value, json};

use crate::memory::{FACT, asks_again, keeps_old, long_talk};
use crate::support::{Room, text};

/// An engine in shell that keeps the last twenty messages.
const KEEP: &str = r#"#!/bin/sh
while read -r line; do
  rest=${line#*\"id\":}
  id=${rest%%[!0-9]*}
  case $line in
    *'"verb":"hello"'*) ok='{"protocol":"1.0","id":"keep","name":"Keep","version":"0.1.0"}' ;;
    *'"verb":"assemble"'*) ok='{"keepLast":20}' ;;
    *) ok='{}' ;;
  esac
  echo "{\"id\":$id,\"ok\":$ok}"
done
"#;

/// Creates a room with these slots and this memory, and a compacted session.
fn compacted(slots: &Value, memory: &Value) -> (Room, String) {
    let room = Room::new();
    let config = json!({
        "plugins": {"slots": slots}, "agents": {"defaults": {"memoryContext": memory}},
    });
    room.write("ctx.json5", config.to_string());
    let file = room.write("talk.jsonl", long_talk(80));
    let file = text(&file).to_owned();
    let done = room.json(&["compact", &file, "--window", "16000", "--force"]);
    assert_eq!(done["compacted"], true, "{done}");
    (room, file)
}

#[test]
fn the_slot_enables_and_disables_memory_with_any_engine() {
    for (slots, memory, is_on) in [
        (json!({}), json!({}), false),
        (json!({"memory": "memory-context"}), json!({}), true),
        (json!({"memory": "memory-context"}), json!({"enabled": false}), false),
        (json!({"memory": "none"}), json!({"enabled": true}), false),
        (json!({"memory": "none", "contextEngine": "memory-context"}), json!({}), false),
        (json!({"contextEngine": "memory-context"}), json!({}), true),
    ] {
        let (room, file) = compacted(&slots, &memory);
        let stats = room.json(&["memory", "stats"]);
        assert_eq!(stats["enabled"], is_on, "{slots} {memory}");
        assert_eq!(stats["segments"].as_u64() > Some(0), is_on, "{slots} {memory}: {stats}");
        let question = "what is the parrot of the lighthouse keeper called?";
        let recalled = room.json(&["recall", question, "--session", &file]);
        let found = recalled["block"].as_str().is_some_and(|block| block.contains(FACT));
        assert_eq!(found, is_on, "{slots} {memory}: {recalled}");
    }
}

#[test]
fn an_unknown_memory_in_the_slot_is_refused_with_the_known_ones() {
    let room = Room::new();
    room.write("ctx.json5", json!({"plugins": {"slots": {"memory": "memroy"}}}).to_string());
    let file = room.write("talk.jsonl", long_talk(4));
    for args in [&["assemble", text(&file)][..], &["memory", "stats"]] {
        room.refused(args, "memroy");
        room.refused(args, "'memory-context' or 'none'");
    }
    for known in ["none", "memory-context"] {
        room.write("ctx.json5", json!({"plugins": {"slots": {"memory": known}}}).to_string());
        assert_eq!(room.ctx(&["config", "check"]).code, Some(0), "{known}");
    }
}

#[test]
fn memory_works_with_an_installed_engine() {
    for is_on in [true, false] {
        let room = Room::new();
        let script = room.write("build/keep.sh", KEEP);
        let added = room.ctx(&["engines", "add", text(&script), "--yes"]);
        assert_eq!(added.code, Some(0), "{}", added.stderr);
        let mut config = keeps_old(json!({}));
        let memory = if is_on { "memory-context" } else { "none" };
        config["plugins"] = json!({"slots": {"contextEngine": "keep", "memory": memory}});
        room.write("ctx.json5", config.to_string());
        let past = room.write("talk/past.jsonl", long_talk(40));
        room.json(&["memory", "ingest", text(&past)]);
        let asking = room.write("talk/asking.jsonl", asks_again());
        let sent = room.ctx(&["assemble", text(&asking), "--window", "16000"]);
        assert_eq!(sent.code, Some(0), "{}", sent.stderr);
        assert!(sent.stdout.contains("keep: planned by the engine"), "{}", sent.stdout);
        assert_eq!(sent.stdout.contains("memory: recalled: "), is_on, "{}", sent.stdout);
    }
}

#[test]
fn a_transcript_without_an_id_is_archived_under_the_name_of_its_file() {
    let message = |n: usize| {
        let (role, words) = match (n, n % 2) {
            (4, _) => ("user", format!("{FACT}. Noted?")),
            (_, 0) => ("user", format!("please look at module {n}")),
            _ => ("assistant", format!("module {n} reads its input and writes it. ").repeat(45)),
        };
        json!({"role": role, "content": words})
    };
    let talk = Value::from((0..80).map(message).collect::<Vec<_>>());
    for args in [&["compact", "FILE", "--force"][..], &["assemble", "FILE", "--record"]] {
        let room = Room::new();
        room.write(
            "ctx.json5",
            json!({"plugins": {"slots": {"memory": "memory-context"}}}).to_string(),
        );
        let file = room.write("talk.json", talk.to_string());
        let args: Vec<_> =
            args.iter().map(|arg| if *arg == "FILE" { text(&file) } else { arg }).collect();
        let ran = room.ctx(&[&args[..], &["--window", "16000"]].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let stats = room.json(&["memory", "stats"]);
        assert!(stats["sessions"]["talk"].as_u64() > Some(20), "{args:?}: {stats}");
        let question = "what is the parrot of the lighthouse keeper called?";
        let found = room.json(&["recall", question, "--session", text(&file)]);
        assert!(found["block"].as_str().is_some_and(|block| block.contains(FACT)), "{found}");
    }
}

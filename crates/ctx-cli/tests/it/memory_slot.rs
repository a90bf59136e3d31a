//! `plugins.slots.memory`: long-term memory beside whatever engine.

use serde_json::{Value, json};

use crate::memory::{FACT, long_talk};
use crate::support::{Room, text};

/// A room with such slots and such a memory, whose session was compacted.
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
fn the_slot_switches_memory_on_and_off_whatever_the_engine() {
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
fn a_slot_that_names_no_memory_is_refused_with_those_there_are() {
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

//! Real transcripts of other agents, if available.

use std::collections::HashSet;

use serde_json::Value;

use crate::support::{Room, data, text};

#[test]
fn a_recorded_pi_session_fits_at_32000() {
    let Some(path) = data("pi/before-compaction.jsonl") else { return };
    let report = Room::new().json(&["replay", text(&path), "--window", "32000"]);
    assert_eq!(report["totals"]["requests"], 484);
    assert_eq!(report["totals"]["overflowsWith"], 0);
    assert_eq!(report["session"]["messages"], 990);
    assert_eq!(report["session"]["toolResults"], 448);
}

#[test]
fn every_engine_profile_and_counter_fits_it() {
    let Some(path) = data("pi/before-compaction.jsonl") else { return };
    let room = Room::new();
    for profile in ["openclaw", "ponybunny", "copaw", "memory-context", "pi"] {
        for window in ["16000", "128000"] {
            let report =
                room.json(&["replay", text(&path), "--window", window, "--profile", profile]);
            assert_eq!(report["totals"]["overflowsWith"], 0, "{profile} {window}");
            assert_eq!(report["totals"]["requests"], 484, "{profile} {window}");
        }
    }
}

#[test]
fn recorded_claude_code_sessions_fit() {
    let Some(folder) = data("claude-code") else { return };
    let room = Room::new();
    for file in std::fs::read_dir(folder).expect("a folder") {
        let path = file.expect("an entry").path();
        if path.extension().is_none_or(|e| e != "jsonl") {
            continue;
        }
        let requests = distinct_answers(&std::fs::read_to_string(&path).expect("text"));
        for window in ["16000", "32000", "128000"] {
            let report = room.json(&["replay", text(&path), "--window", window]);
            assert_eq!(report["totals"]["overflowsWith"], 0, "{} {window}", path.display());
            assert_eq!(report["totals"]["requests"], requests, "{} {window}", path.display());
        }
    }
}

/// Returns the number of distinct `message.id`s of answers that are neither of a sidechain nor synthetic.
fn distinct_answers(text: &str) -> usize {
    let mut ids = HashSet::new();
    for line in text.lines() {
        for value in serde_json::Deserializer::from_str(line).into_iter::<Value>().flatten() {
            let message = &value["message"];
            if value["type"] == "assistant"
                && value["isSidechain"] != true
                && message["model"] != "<synthetic>"
            {
                ids.insert(message["id"].as_str().unwrap_or_default().to_owned());
            }
        }
    }
    ids.len()
}

#[test]
fn profile_pi_has_the_same_figures_as_pi() {
    let (Some(path), Some(golden)) = (data("pi/before-compaction.jsonl"), data("pi/golden.json"))
    else {
        return;
    };
    let golden: Value =
        serde_json::from_str(&std::fs::read_to_string(golden).expect("text")).expect("JSON");
    let session = std::fs::read_to_string(path).expect("text");
    let room = Room::new();
    for case in golden["cases"].as_array().expect("a list") {
        let entries = case["entries"].as_u64().expect("a number") as usize;
        let prefix: String = session.split_inclusive('\n').take(entries + 1).collect();
        let file = room.write(&format!("{entries}.jsonl"), prefix);
        let status = room.json(&["status", text(&file), "--profile", "pi"]);
        let context = &status["context"];
        assert_eq!(context["messages"], case["ctxMessages"], "{entries}");
        assert_eq!(context["roles"], case["ctxRoles"], "{entries}");
        assert_eq!(context["countedTokens"], case["ctxEstimate"], "{entries}");
        assert_eq!(status["allMessagesTokens"], case["allMessagesEstimate"], "{entries}");
        assert_eq!(status["reported"]["tokens"], case["tokensBefore"], "{entries}");
        assert_eq!(status["thinkingLevel"], case["thinkingLevel"], "{entries}");
        assert_eq!(status["model"]["provider"], case["model"]["provider"], "{entries}");
        assert_eq!(status["model"]["modelId"], case["model"]["modelId"], "{entries}");
    }
}

//! Checks the sample sessions in `examples/`, which are invented, but as long and varied as real
//! ones.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

fn lines(name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(super::root().join("examples").join(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn messages(lines: &[Value]) -> impl Iterator<Item = &Value> {
    lines.iter().filter(|line| line["type"] == "message").map(|line| &line["message"])
}

fn blocks<'a>(message: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    message["content"].as_array().into_iter().flatten().filter(move |block| block["type"] == kind)
}

#[test]
fn the_long_session_is_long_enough_to_need_every_layer() {
    let lines = lines("fix-flaky-test.jsonl");
    assert!((300..=500).contains(&lines.len()), "{} lines", lines.len());
    let chars: usize = messages(&lines).map(|message| message["content"].to_string().len()).sum();
    assert!(chars / 4 > 150_000, "{chars} characters");
    let longest = messages(&lines).map(|m| m["content"].to_string().len()).max().unwrap();
    assert!(longest > 100_000, "the longest message has {longest} characters");
    let has = |kind: &str| lines.iter().any(|line| line["type"] == kind);
    for kind in ["session", "model_change", "label", "branch_summary", "compaction"] {
        assert!(has(kind), "{kind}");
    }
    let role = |role: &str| messages(&lines).filter(|m| m["role"] == role).count();
    assert!(role("user") > 15 && role("bashExecution") > 0);
    let all = |kind: &str| messages(&lines).map(|m| blocks(m, kind).count()).sum::<usize>();
    assert!(all("thinking") > 20 && all("image") >= 2);
    assert!(messages(&lines).any(|m| blocks(m, "toolCall").count() >= 3), "parallel calls");
}

#[test]
fn the_session_is_one_tree_and_every_call_is_answered_once() {
    let lines = lines("fix-flaky-test.jsonl");
    let mut seen = HashSet::new();
    for line in &lines[1..] {
        let parent = &line["parentId"];
        assert!(parent.is_null() || seen.contains(parent.as_str().unwrap()), "{parent}");
        assert!(seen.insert(line["id"].as_str().unwrap()), "{}", line["id"]);
    }
    let mut open: HashMap<&str, &str> = HashMap::new();
    for message in messages(&lines) {
        for call in blocks(message, "toolCall") {
            open.insert(call["id"].as_str().unwrap(), call["name"].as_str().unwrap());
        }
        if message["role"] == "toolResult" {
            let name = open.remove(message["toolCallId"].as_str().unwrap());
            assert_eq!(name, message["toolName"].as_str());
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn time_only_goes_forward_and_has_its_pauses() {
    let lines = lines("fix-flaky-test.jsonl");
    let times: Vec<_> = messages(&lines).map(|m| m["timestamp"].as_i64().unwrap()).collect();
    assert!(times.is_sorted());
    let pause = |minutes: i64| {
        times
            .windows(2)
            .any(|pair| (minutes..minutes + 5).contains(&((pair[1] - pair[0]) / 60_000)))
    };
    assert!(pause(7) && pause(64));
}

/// The story needs one edit that fails because its text is not in the file.
#[test]
fn only_the_errors_that_the_story_tells_of_happen() {
    let lines = lines("fix-flaky-test.jsonl");
    let errors: Vec<_> = messages(&lines)
        .filter(|m| m["isError"] == true && m["toolName"] != "bash")
        .map(|m| m["content"][0]["text"].as_str().unwrap())
        .collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
    let text = std::fs::read_to_string(super::root().join("examples/claude-code.jsonl")).unwrap();
    assert!(!text.contains("Could not find the exact text"));
}

#[test]
fn the_claude_code_session_has_what_makes_them_hard_to_read() {
    let lines = lines("claude-code.jsonl");
    assert!((50..=80).contains(&lines.len()), "{} lines", lines.len());
    let mut of_message: HashMap<&str, usize> = HashMap::new();
    for id in lines.iter().filter_map(|line| line["message"]["id"].as_str()) {
        *of_message.entry(id).or_default() += 1;
    }
    assert!(of_message.values().any(|count| *count >= 3), "a message of several lines");
    assert!(lines.iter().any(|line| line["subtype"] == "compact_boundary"));
    assert!(lines.iter().any(|line| line["isCompactSummary"] == true));
    assert!(lines.iter().filter(|line| line["isSidechain"] == true).count() > 3);
    assert!(lines.iter().any(|line| line["message"]["model"] == "<synthetic>"));
    let uuids: Vec<_> = lines.iter().filter_map(|line| line["uuid"].as_str()).collect();
    assert_eq!(uuids.iter().collect::<HashSet<_>>().len(), uuids.len());
}

//! `ctx memory forget`: forgotten text does not come back, and the preview is complete.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::forget_bounds::{holds, room, session};
use crate::memory::said;
use crate::support::{Room, join, pi_lines, text};

/// Creates a transcript of a session with these texts, outside of any home.
fn outside(session: &str, texts: &[&str]) -> (Room, PathBuf) {
    let outside = Room::new();
    let head = pi_lines(0).remove(0).replace("\"s1\"", &format!("\"{session}\""));
    let texts = texts.iter().enumerate().map(|(n, text)| said(n, "user", text));
    let lines: Vec<String> = std::iter::once(head).chain(texts).collect();
    let file = outside.write("f.jsonl", join(&lines));
    (outside, file)
}

fn forget(room: &Room, args: &[&str]) -> Value {
    room.json(&[&["memory", "forget", "--yes"], args].concat())
}

fn found(room: &Room, query: &str) -> bool {
    let found = room.json(&["memory", "search", query]);
    let hits = found["hits"].as_array().expect("a list");
    hits.iter().any(|hit| hit["text"].as_str().is_some_and(|text| text.contains(query)))
}

#[test]
fn forgotten_text_is_not_archived_again() {
    let room = room();
    let said = ["we decided to use the purple elephant for storage", "a grey mouse"];
    let (_outside, file) = outside("s1", &said);
    let (_outside, longer) = outside("s1", &[&said[..], &["a new giraffe"]].concat());
    let ingest = |file| room.json(&["memory", "ingest", text(file)]);
    assert_eq!(ingest(&file)["sessions"][0]["added"], 2);
    let gone = forget(&room, &["--matching", "purple elephant"]);
    assert_eq!((&gone["complete"], &gone["agents"][0]["segments"]), (&json!(true), &json!(1)));
    let hint = gone["hint"].as_str().unwrap_or_default();
    assert!(hint.contains("1 message is in no transcript of the home"), "{gone}");
    room.json(&["memory", "rebuild"]);
    let again = ingest(&longer);
    let figures =
        ["added", "known", "forgotten", "passedOver"].map(|of| again["sessions"][0][of].clone());
    assert_eq!(figures, [1, 1, 1, 0].map(|n| json!(n)), "{again}");
    assert!(!found(&room, "purple elephant") && found(&room, "a new giraffe"));
    let facts = room.json(&["memory", "facts", "--all"]).to_string();
    assert!(!facts.contains("elephant"), "the fact does not come back either: {facts}");
    let shown = room.ctx(&["memory", "ingest", text(&file)]).stdout;
    assert!(shown.contains("2 messages: 0 archived, 1 known, 1 forgotten"), "{shown}");
    for (path, (bytes, _)) in room.files() {
        let text = String::from_utf8_lossy(&bytes).to_lowercase();
        assert!(!text.contains("purple"), "{}", path.display());
    }
    // If named, the transcript itself is reported.
    let named = forget(&room, &[text(&longer), "--matching", "purple elephant"]);
    assert!(holds(&named, "f.jsonl"), "{named}");

    forget(&room, &["--session", "s1"]);
    let again = ingest(&file);
    assert_eq!((&again["sessions"][0]["forgotten"], &again["segments"]), (&json!(2), &json!(0)));
}

#[test]
fn a_message_found_only_in_the_archive_is_shown_from_there() {
    let room = room();
    let key = "ghp_x7Kq2LmN9pR4sT6vW8yZ1aB3cD5eF0gH2jKm";
    let words = format!("the purple elephant has {key}");
    let (_outside, file) = outside("s1", &[&words, "a grey mouse"]);
    for agent in ["main", "ops"] {
        room.json(&["memory", "ingest", text(&file), "--agent", agent]);
    }
    let args = ["memory", "forget", "--matching", "purple elephant"];
    let dry = room.json(&[&args[..], &["--dry-run"]].concat());
    let messages = dry["messages"].as_array().expect("a list");
    assert_eq!(messages.len(), 1, "{dry}");
    assert_eq!((&messages[0]["entry"], &messages[0]["role"]), (&json!("00000000"), &json!("user")));
    let begins = messages[0]["begins"].as_str().expect("a text");
    assert!(begins.starts_with("the purple elephant") && !begins.contains(key), "{begins}");
    let shown = room.ctx(&[&args[..], &["--dry-run"]].concat());
    assert!(shown.stdout.contains("the purple elephant has"), "{}", shown.stdout);
    assert!(shown.stderr.contains("in no transcript of the home"), "{}", shown.stderr);
    let asked = room.ctx(&args);
    assert!(asked.stderr.contains("the purple elephant has"), "{}", asked.stderr);
}

#[test]
fn for_a_text_not_in_the_home_a_hint_names_other_places() {
    let room = room();
    let (_outside, file) = outside("s1", &["a purple elephant"]);
    let args = ["memory", "forget", "--matching", "purple elephant", "--dry-run"];
    let shown = room.ctx(&args);
    assert!(shown.stdout.contains("nothing to forget"), "{}", shown.stdout);
    assert!(shown.stderr.contains("ctx memory forget FILE"), "{}", shown.stderr);
    let named = room.json(&[&args[..], &[text(&file)]].concat());
    assert_eq!((named["messages"].as_array().map(Vec::len), named.get("hint")), (Some(1), None));
}

#[test]
fn two_chinese_characters_and_an_emoji_are_long_enough() {
    for (what, said) in
        [("张三", "张三的电话"), ("🦀", "the 🦀 is back"), ("STRASSE", "an der Straße")]
    {
        let room = room();
        let (_outside, file) = outside("s1", &[said, "something else"]);
        room.json(&["memory", "ingest", text(&file)]);
        let gone = forget(&room, &["--matching", what]);
        assert_eq!(gone["agents"][0]["segments"], 1, "{what}: {gone}");
    }
    let room = room();
    for short in ["的", "ab", "é"] {
        room.refused(&["memory", "forget", "--yes", "--matching", short], "too short");
    }
    let (_outside, file) = outside("s1", &["这个接口是幂等的,可以重试"]);
    room.json(&["memory", "ingest", text(&file)]);
    let recalled = room.ctx(&["recall", "幂等", "--session", "s1"]);
    assert!(!recalled.stderr.contains("recalls nothing"), "{}", recalled.stderr);
}

#[test]
fn the_segment_of_two_equal_messages_stays_if_one_remains() {
    let room = room();
    let texts = ["a purple elephant", "b", "a purple elephant"];
    session(&room, "agents/main/sessions/a.jsonl", "s1", &texts);
    let gone = forget(&room, &["--entry", "00000000"]);
    assert_eq!(
        (&gone["agents"][0]["segments"], &gone["complete"]),
        (&json!(0), &json!(true)),
        "{gone}"
    );
    let why = gone["stillHeld"][0]["why"].as_str().expect("a reason");
    assert!(
        why.contains("a remaining message has the same text, so its segment stays in the archive")
            && why.contains("00000002"),
        "{gone}"
    );
    assert!(found(&room, "a purple elephant"), "the second message contains it");
    let gone = forget(&room, &["--entry", "00000002"]);
    assert_eq!(gone["agents"][0]["segments"], 1, "{gone}");
    assert!(!found(&room, "a purple elephant"));
}

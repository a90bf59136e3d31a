//! `ctx memory forget`: erases messages from every place that stores them.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::memory::keeps_old;
use crate::support::{Room, join, pi_lines, text};

const MARKER: &str = "Zebraheron4711";

/// A home with a session of ctx that has the marker in a question, an answer and a result. It is
/// archived and indexed, with facts, vectors, tool results in files, projections and a summary.
struct House {
    room: Room,
    file: PathBuf,
}

impl House {
    fn new() -> Self {
        Self::of(&planted(40))
    }

    fn of(lines: &[String]) -> Self {
        let room = Room::new();
        let mut config = keeps_old(json!({"search": {"hashWeight": 0.3}}));
        config["agents"]["defaults"]["toolGuard"] = json!({"offload": {"enabled": true}});
        room.write("ctx.json5", config.to_string());
        let outside = Room::new();
        let source = outside.write("source.jsonl", join(lines));
        let file = room.path("agents/main/sessions/s1.jsonl");
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("it is made");
        let to = ["convert", text(&source), "--to", "ctx", "--output", text(&file)];
        assert_eq!(room.ctx(&to).code, Some(0));
        let house = Self { room, file };
        house.json(&["memory", "ingest"], &[]);
        house.json(&["assemble"], &["--window", "32k", "--record"]);
        let done = house.json(&["compact"], &["--window", "16k", "--force"]);
        assert_eq!(done["compacted"], true, "{done}");
        house
    }

    /// Runs a command on the session.
    fn json(&self, command: &[&str], more: &[&str]) -> Value {
        self.room.json(&[command, &[text(&self.file)], more].concat())
    }

    /// Returns the files below the home that contain the marker, ignoring case.
    fn holding(&self) -> Vec<String> {
        self.holding_any(MARKER)
    }

    /// As [`Self::holding`], for any text, plain or JSON-escaped.
    fn holding_any(&self, text: &str) -> Vec<String> {
        let text = text.to_lowercase();
        let quoted = Value::from(text.as_str()).to_string();
        let forms = [text.as_bytes(), quoted.trim_matches('"').as_bytes()];
        let holds = |bytes: &[u8]| {
            let lower = String::from_utf8_lossy(bytes).to_lowercase();
            let holds = |form: &&[u8]| lower.as_bytes().windows(form.len()).any(|w| w == *form);
            forms.iter().any(holds)
        };
        let files = self.room.files();
        let found = files.iter().filter(|(_, (bytes, _))| holds(bytes));
        found.map(|(path, _)| path.to_string_lossy().into_owned()).collect()
    }

    fn forget(&self, more: &[&str]) -> Value {
        self.room.json(&[&["memory", "forget", "--matching", MARKER], more].concat())
    }
}

pub(crate) fn planted(turns: usize) -> Vec<String> {
    let mut lines = pi_lines(turns);
    let plant = |line: &mut String, what: &str, with: &str| {
        assert!(line.contains(what), "{line}");
        *line = line.replacen(what, with, 1);
    };
    plant(
        &mut lines[13],
        "question 3",
        &format!("Let's use {MARKER} instead of MySQL for billing."),
    );
    plant(&mut lines[16], "answer 3", &format!("{MARKER} is configured for billing now."));
    plant(&mut lines[19], "line of output", &format!("{MARKER} connected; line of output"));
    lines
}

/// Whether the list has a file of that name.
fn has(files: &[String], name: &str) -> bool {
    files.iter().any(|file| file.contains(name))
}

#[test]
fn no_file_below_the_home_contains_forgotten_text() {
    let house = House::new();
    let before = house.holding();
    for name in ["sessions/s1.jsonl", "segments.jsonl", "knowledge.jsonl", "tool-results"] {
        assert!(has(&before, name), "{name} contains it: {before:?}");
    }
    let files = house.room.files();
    let dry = house.forget(&["--dry-run"]);
    assert_eq!(house.room.files(), files, "a dry run writes nothing");
    assert_eq!(dry["messages"].as_array().map(Vec::len), Some(3), "{dry}");
    assert!(dry["messages"][0]["begins"].as_str().is_some_and(|b| b.contains(MARKER)), "{dry}");
    let asks = ["memory", "forget", "--matching", MARKER];
    let unasked = house.room.ctx(&asks);
    assert_eq!((unasked.code, unasked.stdout.as_str()), (Some(1), ""));
    assert!(
        unasked.stderr.contains("error: no terminal to ask for confirmation"),
        "{}",
        unasked.stderr
    );
    assert_eq!(house.room.files(), files, "nothing is done without confirmation");

    let gone = house.forget(&["--yes"]);
    assert_eq!(house.holding(), [""; 0], "{gone}");
    assert_eq!((&gone["complete"], &gone["stillHeld"]), (&json!(true), &json!([])), "{gone}");
    assert!(!gone.to_string().contains(MARKER), "the report does not contain it: {gone}");
    let agent = &gone["agents"][0];
    assert_eq!(agent["segments"], dry["agents"][0]["segments"]);
    for what in ["segments", "vectors", "facts", "toolResults"] {
        assert!(agent[what].as_u64() >= Some(1), "{what}: {gone}");
    }
    assert_eq!(gone["files"][0]["messages"], 3, "{gone}");
    assert_eq!(gone["files"][0]["undoEnded"].as_array().map(Vec::len), Some(1));

    // The rest remains, and the forgotten text does not come back.
    let found = house.room.json(&["memory", "search", MARKER, "--limit", "50"]);
    assert!(!found["hits"].to_string().contains(MARKER), "{found}");
    let stats = house.room.json(&["memory", "stats"]);
    assert_eq!(stats["segments"], stats["sessions"]["s1"]);
    assert_eq!(house.json(&["compact"], &["--undo"])["undone"], true);
    let whole = house.json(&["assemble"], &["--window", "200k"])["messages"].to_string();
    assert!(whole.contains("question 5") && !whole.contains(MARKER), "{whole}");
    house.json(&["memory", "ingest"], &[]);
    assert_eq!(house.holding(), [""; 0]);
    let check = house.json(&["check"], &[]);
    assert_eq!((&check["ok"], &check["problems"]), (&json!(true), &json!([])), "{check}");
    let again = house.forget(&["--yes"]);
    assert_eq!((&again["messages"], &again["files"]), (&json!([]), &json!([])));
}

#[test]
fn a_message_is_erased_by_its_id_with_its_derived_data() {
    let house = House::new();
    let id = "0000000c";
    let entry = ["memory", "forget", "--entry", id, "--yes"];
    let gone = house.room.json(&entry);
    assert_eq!(gone["messages"].as_array().map(Vec::len), Some(1), "{gone}");
    assert_eq!(gone["agents"][0]["segments"], 1, "{gone}");
    let left = house.holding();
    assert!(has(&left, "s1.jsonl") && has(&left, "segments.jsonl"), "others contain it: {left:?}");
    let facts =
        std::fs::read_to_string(house.room.path("agents/main/memory/context/knowledge.jsonl"));
    assert!(!facts.expect("it is there").contains("instead of MySQL"));
    assert!(!std::fs::read_to_string(&house.file).expect("it is there").contains("MySQL"));
    house.room.refused(&entry, "no session has a message of that id");

    // The same id belongs to another entry in another session.
    let other = house.room.write("other.jsonl", join(&pi_lines(4)));
    let (other, entry) = (text(&other), ["memory", "forget", "--entry", "00000003", "--yes"]);
    let ambiguous = house.room.write("two.jsonl", join(&pi_lines(4)).replace("answer", "reply"));
    let both = [&entry[..], &[other, text(&ambiguous)]].concat();
    house.room.refused(&both, "several sessions have an entry of that id");
    let one = house.room.json(&[&both[..], &["--session", text(&ambiguous)]].concat());
    assert_eq!(one["messages"].as_array().map(Vec::len), Some(1), "{one}");
    assert_eq!(one["stillHeld"].as_array().map(Vec::len), Some(1), "{one}");
}

#[test]
fn a_whole_session_is_erased_by_its_id() {
    let house = House::new();
    let gone = house.room.json(&["memory", "forget", "--session", "s1", "--yes"]);
    assert_eq!(house.holding(), [""; 0], "{gone}");
    assert_eq!(house.room.json(&["memory", "stats"])["segments"], 0);
    assert_eq!(house.room.json(&["memory", "facts", "--all"])["facts"], json!([]));
    let left = std::fs::read_to_string(&house.file).expect("it is there");
    assert_eq!(left.lines().count(), 1, "the header: {left}");
    house.room.refused(&["memory", "forget", "--session", "nobody", "--yes"], "unknown session");
    house.room.misused(&["memory", "forget", "--yes"], "--entry");
    house.room.refused(&["memory", "forget", "--matching", "ab", "--yes"], "too short");
}

#[test]
fn a_file_of_another_program_is_listed_and_its_erased_messages_are_ignored() {
    let house = House::new();
    let outside = Room::new();
    let theirs = outside.write("theirs.jsonl", join(&planted(40)).replace("\"s1\"", "\"t1\""));
    let theirs = text(&theirs);
    let bytes = std::fs::read(theirs).expect("it is there");
    house.room.json(&["memory", "ingest", theirs]);
    assert_eq!(
        house.room.json(&["compact", theirs, "--window", "16k", "--force"])["compacted"],
        true
    );
    let gone = house.forget(&["--yes"]);
    assert_eq!(house.holding(), [""; 0], "{gone}");
    assert_eq!(std::fs::read(theirs).expect("it is there"), bytes);
    let held = gone["stillHeld"].as_array().expect("a list");
    assert_eq!(held.len(), 1, "{gone}");
    assert!(held[0]["path"].as_str().is_some_and(|path| path.ends_with("theirs.jsonl")), "{gone}");
    house.room.json(&["compact", theirs, "--undo"]);
    let whole = house.room.json(&["assemble", theirs, "--window", "200k"]).to_string();
    assert!(whole.contains("question 5") && !whole.contains(MARKER), "{whole}");
    let expanded = house.room.ctx(&["expand", theirs, "00000010"]);
    assert!(!expanded.stdout.contains(MARKER), "{}", expanded.stdout);
    house.room.json(&["memory", "ingest", theirs]);
    assert_eq!(house.holding(), [""; 0], "what was forgotten is not archived again");
}

#[test]
fn a_killed_run_leaves_intact_files_and_the_next_run_finishes() {
    let mut stages = 0;
    for least in 0..5 {
        let house = House::new();
        let before = house.holding().len();
        let mut child = house
            .room
            .command(&["memory", "forget", "--matching", MARKER, "--yes"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it runs");
        // Killed as soon as more than `least` files have lost the marker.
        while child.try_wait().expect("it is ours").is_none() {
            if house.holding().len() + least < before {
                child.kill().expect("it is ours");
            }
        }
        stages += usize::from(!house.holding().is_empty());
        let whole = house.json(&["check"], &[]);
        assert_eq!(whole["ok"], true, "{whole}");
        assert!(is_jsonl(&house.room.path("agents/main/memory/context/segments.jsonl")));
        let gone = house.forget(&["--yes"]);
        assert_eq!(gone["complete"], true, "{gone}");
        assert_eq!(house.holding(), [""; 0], "after {least}: {gone}");
    }
    assert!(stages > 0, "no run was killed in the middle");
}

fn is_jsonl(path: &Path) -> bool {
    let text = std::fs::read_to_string(path).expect("it is there");
    text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok())
}

/// Stored texts, the text to forget, and the parts that must not remain anywhere.
const VARIANTS: [(&str, &str, &[&str]); 5] = [
    ("我们的代号是斑马苍鹭计划，不要告诉别人。", "斑马苍鹭计划", &["斑马", "苍鹭"]),
    (
        "the launch word is\n  Purple   Walrus\n\ttango now",
        "purple walrus TANGO",
        &["walrus", "tango"],
    ),
    (
        "api key ghp_x7Kq2LmN9pR4sT6vW8yZ1aB3cD5eF0gH2jKm belongs to Quentin Marlowe",
        "ghp_x7Kq2LmN9pR4sT6vW8yZ1aB3cD5eF0gH2jKm belongs to Quentin",
        &["quentin", "marlowe", "x7kq2lmn"],
    ),
    ("deploy says \"Ünïcörn\\Straße\" at once", "\"Ünïcörn\\Straße\"", &["straße"]),
    ("call me Quimbleworth, always", "QUIMBLEWORTH", &["quimblew"]),
];

#[test]
fn redacted_wrapped_quoted_and_chinese_texts_are_erased_completely() {
    for (says, matching, gone) in VARIANTS {
        let mut lines = planted(40);
        let says = Value::from(says).to_string();
        // In a question, at the end of a result that projections truncate, and in the arguments of a call.
        lines[21] = lines[21].replace("\"question 5\"", &says);
        let inner = says.trim_matches('"');
        lines[23] = lines[23].replace("\\n\"}]", &format!("\\n{inner}\"}}]"));
        lines[26] = lines[26].replace("src/6.rs", inner);
        let house = House::of(&lines);
        let before: Vec<_> = gone.iter().map(|gone| house.holding_any(gone)).collect();
        for name in ["s1.jsonl", "segments.jsonl", "tool-results"] {
            assert!(before.iter().any(|held| has(held, name)), "{name}: {matching}: {before:?}");
        }
        let files = house.room.files();
        let dry = ["memory", "forget", "--matching", matching, "--dry-run"];
        let dry = house.room.json(&dry);
        assert_eq!(dry["messages"].as_array().map(Vec::len), Some(3), "{matching}: {dry}");
        assert_eq!(house.room.files(), files, "a dry run writes nothing");
        let done = house.room.json(&["memory", "forget", "--matching", matching, "--yes"]);
        for gone in gone {
            assert_eq!(house.holding_any(gone), [""; 0], "{gone}: {done}");
        }
        assert_eq!(done["complete"], true, "{done}");
        assert!(!house.holding().is_empty(), "other text remains");
        assert_eq!(house.json(&["check"], &[])["ok"], true);
    }
}

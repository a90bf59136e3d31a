//! `ctx eval compact` as a program.

use std::path::Path;

use expect_test::expect_file;
use serde_json::{Value, json};

use crate::support::{Room, join, pi_lines, text};

/// A quick run with few arms.
const FEW: [&str; 8] =
    ["eval", "compact", "--quick", "--rounds", "1,3", "--profile", "openclaw", "--preset"];

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    text(&path).to_owned()
}

/// Returns the labels of a report, which do not depend on the arms.
fn labels(report: &Value) -> String {
    let of = |value: &Value| value["of"].clone();
    let cells = report["arms"][0]["cells"].as_array().expect("a list").iter().map(|cell| {
        let kinds = cell["loose"]["kinds"].as_object().expect("an object");
        let kinds: Value = kinds.iter().map(|(kind, share)| (kind.clone(), of(share))).collect();
        let planted = &cell["planted"];
        json!({
            "budget": cell["budget"], "rounds": cell["rounds"], "histories": cell["histories"],
            "historyTokens": cell["historyTokens"], "compactions": cell["compactions"],
            "strict": of(&cell["strict"]["present"]), "loose": of(&cell["loose"]["present"]),
            "kinds": kinds, "files": of(&cell["files"]), "todos": of(&cell["todos"]),
            "statements": of(&planted["statements"]), "updates": of(&planted["updates"]),
            "pairs": of(&planted["pairs"]), "distractors": of(&planted["distractors"]),
        })
    });
    let cells: Vec<Value> = cells.collect();
    let arms = report["arms"].as_array().expect("a list").iter();
    let arms: Vec<_> = arms.map(|arm| json!([arm["name"], arm["kind"], arm["compared"]])).collect();
    let cuts: Vec<_> =
        report["sessions"].as_array().expect("a list").iter().map(|s| &s["cuts"]).collect();
    let shown =
        json!({"reference": report["reference"], "arms": arms, "cuts": cuts, "cells": cells});
    format!("{}\n", serde_json::to_string_pretty(&shown).expect("JSON"))
}

#[test]
fn the_labels_of_the_examples_match_the_snapshot() {
    let room = Room::new();
    let (one, two) = (example("fix-flaky-test.jsonl"), example("claude-code.jsonl"));
    let report = room.json(&[&FEW[..], &["codex,mask-observations", &one, &two]].concat());
    expect_file!["eval_compact.txt"].assert_eq(&labels(&report));
    // These do not depend on the figures of the arms.
    for arm in report["arms"].as_array().expect("a list") {
        for cell in arm["cells"].as_array().expect("a list") {
            assert_eq!(cell["failures"], 0, "{cell}");
            let same =
                |it: &&Value| it["budget"] == cell["budget"] && it["rounds"] == cell["rounds"];
            let reference = report["arms"][0]["cells"].as_array().expect("a list");
            let reference = reference.iter().find(same).expect("the reference has the setting");
            // Where the agent compacted itself, its own size is the limit.
            let is_within = cell["tokens"].as_u64() <= reference["tokens"].as_u64();
            assert!(is_within || cell["budget"].is_null(), "{arm}");
            assert!(cell["receipt"]["coverage"].is_number());
        }
    }
}

#[test]
fn the_same_input_gives_the_same_figures_except_times() {
    let room = Room::new();
    let path = example("fix-flaky-test.jsonl");
    let run = || {
        let mut report = room.json(&[&FEW[..], &["codex", &path, "--show", "1"]].concat());
        untimed(&mut report);
        report
    };
    let report = run();
    assert_eq!(report, run());
    assert_eq!(report["worst"].as_array().map(Vec::len), Some(1));
    assert_eq!(report["differences"][0]["low"], Value::Null, "no interval over one session");
}

fn untimed(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("millis");
            fields.values_mut().for_each(untimed);
        }
        Value::Array(values) => values.iter_mut().for_each(untimed),
        _ => {}
    }
}

#[test]
fn tables_page_and_export_contain_every_arm() {
    let room = Room::new();
    let (page, folder) = (room.path("page.html"), room.path("export"));
    let path = example("fix-flaky-test.jsonl");
    let args = ["codex", &path, "--html", text(&page), "--export", text(&folder), "--show", "1"];
    let ran = room.ctx(&[&FEW[..], &args].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for words in [
        "Needed next",
        "Planted statements",
        "Work and cost",
        "(identifier list)",
        "1 of",
        "before ",
    ] {
        assert!(ran.stdout.contains(words), "{words}: {}", ran.stdout);
    }
    let page = std::fs::read_to_string(&page).expect("the page is there");
    assert!(page.contains("<title>ctx eval compact</title>") && page.contains("identifier list"));
    let lines =
        std::fs::read_to_string(folder.join("01-fix-flaky-test.jsonl")).expect("the export");
    let lines: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let count = |kind: &str| lines.iter().filter(|line| line["type"] == kind).count();
    // Two cuts; eight arms, two numbers of compactions, with and without statements.
    assert_eq!((count("labels"), count("request")), (2, 2 * 8 * 2 * 2));
    room.refused(&[&FEW[..], &args].concat(), "cannot create the folder of the export");
}

#[test]
fn custom_statements_are_planted_and_none_plants_nothing() {
    let room = Room::new();
    let path = example("fix-flaky-test.jsonl");
    let line = r#"{"set":"a","id":"1","type":"fact","text":"The vault is Amber-52.","required":["amber-52"]}"#;
    let file = room.write("planted.jsonl", format!("{line}\n"));
    let planted = |file: &str| {
        let report = room.json(&[&FEW[..], &["codex", &path, "--planted", file]].concat());
        report["arms"][0]["cells"][0]["planted"]["statements"]["of"].clone()
    };
    assert_eq!((planted(text(&file)), planted("none")), (json!(2), json!(0)));
    let wrong = room.write("wrong.jsonl", format!("{line}\n{{}}\n"));
    let args = [&FEW[..], &["codex", &path, "--planted", text(&wrong)]].concat();
    room.refused(&args, "not a statement to plant");
    room.refused(
        &[&FEW[..], &["codex", &path, "--planted", "nowhere.jsonl"]].concat(),
        "nowhere.jsonl",
    );
}

#[cfg(unix)]
#[test]
fn a_program_enters_as_an_arm_and_its_failure_is_a_row() {
    let room = Room::new();
    let path = example("fix-flaky-test.jsonl");
    let script = room.write(
        "candidate.sh",
        "while read -r line; do echo '{\"summary\":\"all about src/session/cache.rs\"}'; done\n",
    );
    let command = format!("sh {}", text(&script));
    let run = |command: &str| {
        let args = ["codex", path.as_str(), "--planted", "none", "--candidate-cmd", command];
        let report = room.json(&[&FEW[..], &args].concat());
        let arms = report["arms"].as_array().expect("a list").clone();
        arms.into_iter().find(|arm| arm["kind"] == "candidate").expect("its arm")
    };
    let arm = run(&command);
    assert_eq!((&arm["name"], &arm["cells"][0]["failures"]), (&json!(command), &json!(0)));
    let broken = room.write("broken.sh", "exit 7\n");
    let arm = run(&format!("sh {}", text(&broken)));
    assert_eq!(arm["cells"][0]["failures"], 2);
    let why = arm["cells"][0]["failed"].as_str().expect("why");
    assert!(why.contains("ended without an answer"), "{why}");
    let missing = ["codex", path.as_str(), "--candidate-cmd", "no-such-program"];
    room.misused(&[&FEW[..], &missing].concat(), "cannot start the candidate");
}

#[test]
fn unmeasurable_input_is_refused_or_reported() {
    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(5)));
    let path = text(&path);
    for (flag, value) in
        [("--cuts", "0"), ("--budgets", "0"), ("--budgets", "95"), ("--rounds", "0")]
    {
        room.misused(&["eval", "compact", path, flag, value], flag);
    }
    room.misused(&["eval", "compact", path, "--preset", "codx"], "unknown preset 'codx'");
    room.refused(&["eval", "compact", "nowhere.jsonl"], "nowhere.jsonl");
    let ran = room.ctx(&["eval", "compact", path, "--quick"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("too short to be cut"), "{}", ran.stderr);
}

//! `ctx eval` as a program.

use serde_json::Value;

use crate::support::{Ran, Room, data, join, pi_lines, text};

fn row<'a>(report: &'a Value, kind: &str, name: &str) -> &'a Value {
    let rows = report["rows"].as_array().expect("a list");
    let found = rows.iter().find(|row| row["kind"] == kind && row["name"] == name);
    found.unwrap_or_else(|| panic!("no {kind} {name} in {report}"))
}

#[test]
fn every_candidate_is_a_row_and_the_same_input_gives_the_same_bytes() {
    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(40)));
    let args =
        ["eval", text(&path), "--window", "16000", "--engine", "legacy", "--memory", "--json"];
    let (one, two) = (room.ctx(&args), room.ctx(&args));
    assert_eq!(one.code, Some(0), "{}", one.stderr);
    assert_eq!(one.stdout, two.stdout);
    let report: Value = serde_json::from_str(&one.stdout).expect("JSON");
    for profile in ["openclaw", "ponybunny", "copaw", "memory-context", "pi"] {
        let row = row(&report, "profile", profile);
        assert_eq!((&row["wedges"], &row["ungrounded"]), (&0.into(), &0.into()), "{row}");
    }
    let [off, on] =
        ["openclaw", "openclaw, before-newest"].map(|name| row(&report, "profile", name));
    let needed = |row: &Value| row["neededNext"]["strict"]["of"].as_u64();
    assert_eq!(needed(off), needed(on), "the labels do not depend on the arm");
    assert_eq!(off["blockTokens"], 0);
    // The engine runs under the configured profile.
    let engine = row(&report, "engine", "legacy");
    assert_eq!(engine["sentTokens"], row(&report, "profile", "openclaw")["sentTokens"]);
    assert!(row(&report, "none", "nothing")["wedges"].as_u64() > Some(10));
    assert_eq!(report["presets"].as_array().map(Vec::len), Some(11));
    for preset in report["presets"].as_array().expect("a list") {
        row(&report, "preset", preset["name"].as_str().expect("a name"));
    }
}

#[test]
fn several_sessions_are_summed_up() {
    let room = Room::new();
    let (one, two) = (pi_lines(10), pi_lines(20));
    let (one, two) = (room.write("1.jsonl", join(&one)), room.write("2.jsonl", join(&two)));
    let narrow = ["--window", "16000", "--profile", "pi", "--preset", "codex,truncation"];
    let both = room.json(&[&["eval", text(&one), text(&two)][..], &narrow].concat());
    let alone = |path| room.json(&[&["eval", path][..], &narrow].concat());
    let sent = |report: &Value| row(report, "profile", "pi")["sentTokens"].as_u64();
    let (first, second) = (alone(text(&one)), alone(text(&two)));
    assert_eq!(sent(&both), sent(&first).zip(sent(&second)).map(|(a, b)| a + b));
    assert_eq!(both["rows"].as_array().map(Vec::len), Some(4));
    assert_eq!(both["sessions"][1]["rows"], second["rows"]);
}

#[test]
fn the_output_describes_the_presets() {
    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(40)));
    let ran = room.ctx(&["eval", text(&path), "--window", "16000", "--compact-to", "0.2"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for words in ["candidate", "coverage", "at 20 %", "without audit and repair", "codex"] {
        assert!(ran.stdout.contains(words), "{words}: {}", ran.stdout);
    }
}

#[test]
fn a_page_replaces_a_page_and_never_a_transcript() {
    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(5)));
    let other = room.write("t.jsonl", join(&pi_lines(6)));
    let page = room.path("page.html");
    let write = |to: &str, more: &[&str]| {
        let args = ["eval", text(&path), text(&other), "--window", "16000", "--html", to];
        room.ctx(&[&args[..], more].concat())
    };
    let [html, again] = [(); 2].map(|()| {
        let ran = write(text(&page), &["--json"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let html = std::fs::read_to_string(&page).expect("the page is there");
        // The page contains the report.
        let (_, data) = html.split_once(r#"id="report">"#).expect("its data");
        let data = data.split_once("</script>").expect("the end of the data").0;
        let value = |json: &str| serde_json::from_str::<Value>(json).expect("JSON");
        assert_eq!(value(data), value(&ran.stdout));
        html
    });
    assert_eq!(html, again);
    assert!(html.starts_with("<!doctype html>") && html.contains("<title>ctx eval</title>"));
    for transcript in [&path, &other] {
        let before = std::fs::read(transcript).expect("it is there");
        let ran = write(text(transcript), &["--force"]);
        assert_eq!(ran.code, Some(1));
        assert!(ran.stderr.contains("would replace the transcript"), "{}", ran.stderr);
        assert_eq!(std::fs::read(transcript).expect("it is there"), before);
    }
}

#[test]
fn invalid_evaluations_are_refused() {
    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(5)));
    let path = text(&path);
    room.misused(&["eval", path, "--preset", "codx"], "unknown preset 'codx'");
    room.misused(&["eval", path, "--compact-to", "30"], "--compact-to");
    room.misused(&["eval", path, "--compact-to", "NaN"], "--compact-to");
    room.misused(&["eval", path, "--engine", "legcy"], "unknown context engine 'legcy'");
    room.misused(&["eval", path, "--window", "10"], "window");
    room.refused(&["eval", "nowhere.jsonl"], "nowhere.jsonl");
    let nobody = Ran::of(room.command(&["eval"]).env("HOME", room.path("nobody")));
    assert_eq!(nobody.code, Some(1), "{}", nobody.stderr);
}

#[test]
fn recorded_sessions_compacted_to_thirty_percent_keep_required_facts() {
    let Some(folder) = data("claude-code") else { return };
    let Some(pi) = data("pi/before-compaction.jsonl") else { return };
    let room = Room::new();
    let claude = folder.join("03_2026-01-08_0442a060.jsonl");
    let arms = ["--profile", "openclaw", "--preset", "claude-code"];
    let report = room.json(&[&["eval", text(&pi), text(&claude)][..], &arms].concat());
    let once = report["once"].as_array().expect("a list");
    let ours = once.iter().find(|row| row["name"] == "openclaw").expect("the default profile");
    assert!(ours["coverage"].as_f64() >= Some(0.95), "{ours}");
    assert_eq!((&ours["ungrounded"], &ours["reached"]), (&0.into(), &2.into()), "{ours}");
    let recorded = row(&report, "recorded", "recorded");
    assert_eq!(recorded["calls"], 4);
    assert!(recorded["coverage"].as_f64() < Some(0.95), "{recorded}");
}

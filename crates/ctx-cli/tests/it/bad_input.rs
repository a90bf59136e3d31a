//! Damage in transcripts is skipped and reported; invalid input is rejected; originals do not change.

use std::fs;

use serde_json::Value;

use crate::support::{Room, join, pi_lines, text};

const TURNS: usize = 60;

/// Reads a damaged file with every reading command, and checks that all succeed. Returns the number
/// of requests the replay found, and the problems `check` reported.
fn read_around(name: &str, bytes: &[u8]) -> (usize, Vec<String>) {
    let room = Room::new();
    let path = room.write(name, bytes);
    let file = text(&path);
    let replay = room.json(&["replay", file, "--window", "16000"]);
    assert_eq!(replay["totals"]["overflowsWith"], 0, "{name}");
    let status = room.json(&["status", file, "--window", "16000"]);
    assert!(status["context"]["messages"].as_u64().is_some(), "{name}");
    let assembled = room.json(&["assemble", file, "--window", "16000"]);
    assert!(assembled["messages"].is_array(), "{name}");
    let check = room.json(&["check", file]);
    let kinds = check["problems"].as_array().expect("a list");
    let kinds = kinds.iter().map(|p| p["kind"].as_str().unwrap_or_default().to_owned()).collect();
    repairs(&room, file, name);
    assert_eq!(fs::read(&path).expect("still there"), bytes, "{name}: the original changed");
    (replay["totals"]["requests"].as_u64().expect("a number") as usize, kinds)
}

/// Checks that the repaired copy has no problems and the same number of messages.
fn repairs(room: &Room, file: &str, name: &str) {
    let copy = room.path("copy.jsonl");
    let before = room.json(&["check", file, "--repair", "-o", text(&copy)]);
    let after = room.json(&["check", text(&copy)]);
    let left = after["problems"].as_array().expect("a list");
    // Unusual lines and a future version are kept: neither is damage.
    let harmless = |p: &Value| p["severity"] == "carried" || p["kind"] == "unknownVersion";
    assert!(left.iter().all(harmless), "{name}: {after}");
    assert_eq!(before["session"]["messages"], after["session"]["messages"], "{name}");
}

fn session() -> Vec<String> {
    pi_lines(TURNS)
}

#[test]
fn an_intact_session_has_no_problems() {
    let (requests, problems) = read_around("whole.jsonl", join(&session()).as_bytes());
    assert_eq!((requests, problems), (TURNS * 2, vec![]));
}

#[test]
fn a_missing_or_broken_header() {
    let lines = session();
    let (requests, problems) = read_around("headless.jsonl", join(&lines[1..]).as_bytes());
    assert_eq!(requests, TURNS * 2);
    assert!(!problems.is_empty());
    let mut lines = session();
    lines[0].truncate(40);
    let (requests, problems) = read_around("broken-header.jsonl", join(&lines).as_bytes());
    assert_eq!(requests, TURNS * 2);
    assert!(!problems.is_empty());
}

#[test]
fn a_version_from_the_future() {
    let mut lines = session();
    lines[0] = lines[0].replace("\"version\":3", "\"version\":99");
    let (requests, problems) = read_around("v99.jsonl", join(&lines).as_bytes());
    assert_eq!(requests, TURNS * 2);
    assert_eq!(problems.len(), 1);
}

#[test]
fn an_incomplete_last_line_is_skipped() {
    let whole = join(&session());
    let torn = &whole[..whole.len() - 40];
    let (requests, problems) = read_around("torn.jsonl", torn.as_bytes());
    assert_eq!(requests, TURNS * 2 - 1);
    assert_eq!(problems.len(), 1);
}

#[test]
fn a_missing_final_newline_loses_nothing() {
    let whole = join(&session());
    let (requests, _) = read_around("no-newline.jsonl", whole.trim_end().as_bytes());
    assert_eq!(requests, TURNS * 2);
}

#[test]
fn a_corrupt_middle_line_is_skipped() {
    let mut lines = session();
    lines[101].replace_range(60..90, "\u{0}\u{0}garbage{{{");
    let (requests, problems) = read_around("corrupt.jsonl", join(&lines).as_bytes());
    assert!(requests >= TURNS * 2 - 1, "{requests}");
    assert!(!problems.is_empty());
}

#[test]
fn a_block_of_nul_bytes() {
    let whole = join(&session());
    let mut bytes = whole.into_bytes();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 4096].fill(0);
    let (requests, problems) = read_around("nul.jsonl", &bytes);
    assert!(requests >= TURNS * 2 - 6, "{requests}");
    assert!(!problems.is_empty());
}

#[test]
fn invalid_utf8_is_replaced() {
    let mut bytes = join(&session()).into_bytes();
    let at = bytes.windows(10).position(|w| w == b"question 7").expect("it is there");
    bytes[at] = 0xFF;
    let (requests, problems) = read_around("utf8.jsonl", &bytes);
    assert_eq!(requests, TURNS * 2);
    assert_eq!(problems.len(), 1);
}

#[test]
fn duplicate_lines_and_ids() {
    let mut lines = session();
    let copy = lines[50].clone();
    lines.insert(51, copy);
    let (requests, problems) = read_around("duplicate-line.jsonl", join(&lines).as_bytes());
    assert_eq!((requests, problems.len()), (TURNS * 2, 1));

    let mut lines = session();
    let other = lines[48].replace("answer 11", "another answer").replace("question 11", "else");
    lines.insert(49, other);
    let (requests, problems) = read_around("duplicate-id.jsonl", join(&lines).as_bytes());
    assert!(requests >= TURNS * 2, "{requests}");
    assert!(!problems.is_empty());
}

#[test]
fn a_cycle_of_parents() {
    let mut lines = session();
    lines[40] = lines[40].replace("\"parentId\":\"00000026\"", "\"parentId\":\"00000030\"");
    assert!(lines[40].contains("00000030"));
    let (requests, problems) = read_around("cycle.jsonl", join(&lines).as_bytes());
    assert_eq!(requests, TURNS * 2);
    assert!(!problems.is_empty());
}

#[test]
fn deep_nesting_in_arguments_and_in_unknown_fields() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let mut lines = session();
    lines[2] = lines[2].replace("\"src/0.rs\"", &deep);
    lines[5] = lines[5].replace("{\"role\"", &format!("{{\"extra\":{deep},\"role\""));
    let (requests, problems) = read_around("deep.jsonl", join(&lines).as_bytes());
    assert_eq!(requests, TURNS * 2);
    assert!(problems.iter().all(|kind| kind == "deepNesting"), "{problems:?}");
    assert_eq!(problems.len(), 2);
}

#[test]
fn unknown_roles_blocks_and_entry_types() {
    let mut lines = session();
    lines[9] = lines[9].replace("\"role\":\"user\"", "\"role\":\"narrator\"");
    lines[13] = lines[13].replace("\"type\":\"text\"", "\"type\":\"hologram\"");
    lines[17] = lines[17].replacen("\"type\":\"message\"", "\"type\":\"weather\"", 1);
    let (requests, problems) = read_around("unknown.jsonl", join(&lines).as_bytes());
    assert_eq!(requests, TURNS * 2);
    for kind in ["unknownRole", "unknownBlock", "unknownEntry"] {
        assert!(problems.iter().any(|p| p == kind), "{kind}: {problems:?}");
    }
}

#[test]
fn orphan_and_duplicate_tool_results() {
    let mut lines = session();
    lines[2] = lines[2].replace("call_0", "call_elsewhere");
    lines[8] = lines[8].replace("call_1", "call_0");
    let (requests, problems) = read_around("orphans.jsonl", join(&lines).as_bytes());
    assert_eq!(requests, TURNS * 2);
    assert!(problems.iter().any(|p| p == "orphanResult"), "{problems:?}");
    let mut lines = session();
    let again = lines[3].replace("00000002", "0000ffff").replace("00000001", "00000002");
    lines[4] = lines[4].replace("\"parentId\":\"00000002\"", "\"parentId\":\"0000ffff\"");
    lines.insert(4, again);
    let (_, problems) = read_around("duplicate-result.jsonl", join(&lines).as_bytes());
    assert!(problems.iter().any(|p| p == "duplicateResult"), "{problems:?}");
}

#[test]
fn one_line_of_many_megabytes() {
    let mut lines = session();
    let big = "x".repeat(20 << 20);
    lines[7] = lines[7].replacen("line of output", &big, 1);
    let room = Room::new();
    let path = room.write("big.jsonl", join(&lines));
    let replay = room.json(&["replay", text(&path), "--window", "16000"]);
    assert_eq!(replay["totals"]["requests"], TURNS * 2);
    assert_eq!(replay["totals"]["overflowsWith"], 0);
    let check = room.json(&["check", text(&path)]);
    assert_eq!(check["problems"][0]["kind"], "longLine");
}

#[test]
fn files_that_are_not_transcripts_are_refused() {
    let room = Room::new();
    let empty = room.write("empty.jsonl", "");
    let binary = room.write("binary", (0..=255u8).cycle().take(4096).collect::<Vec<_>>());
    let prose = room.write("prose.txt", "It was a dark and stormy night.\n".repeat(40));
    let json = room.write("other.json", r#"{"name":"x","version":"1.0.0"}"#);
    for path in [&empty, &binary, &prose, &json] {
        for command in ["replay", "status", "assemble", "check"] {
            room.refused(&[command, text(path)], text(path));
        }
    }
    room.refused(&["replay", text(&room.path("absent.jsonl"))], "absent.jsonl");
}

#[test]
fn invalid_windows_are_refused() {
    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(3)));
    for window in ["0", "1", "15999"] {
        let words = format!(
            "Model context window too small ({window} tokens; source=agentContextTokens). Minimum is 16000."
        );
        room.misused(&["replay", text(&path), "--window", window], &words);
    }
    for window in ["9223372036854775808", "lots"] {
        room.misused(&["replay", text(&path), "--window", window], window);
    }
}

#[test]
fn a_config_with_an_unknown_key_is_refused() {
    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(3)));
    room.write("ctx.json5", "{ agents: { defaults: { contextPrunning: { mode: 'off' } } } }");
    room.refused(&["replay", text(&path)], "contextPrunning");
    room.refused(&["config", "check"], "contextPruning");
}

#[test]
fn all_errors_of_a_config_are_reported_at_once() {
    let room = Room::new();
    room.write(
        "ctx.json5",
        "{ profil: 'pi', agents: { defaults: { contextPruning: { mode: 3 }, compaction: { enabled: 'x' } } },
           session: { reset: { mode: 'never' } } }",
    );
    let ran = room.ctx(&["config", "check"]);
    assert_eq!(ran.code, Some(1));
    for words in ["'profil'", "contextPruning.mode", "compaction.enabled", "session.reset.mode"] {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
    assert_eq!(ran.stderr.matches("error: ").count(), 4, "{}", ran.stderr);
    room.refused(&["engines"], "`ctx config check` shows all 4 errors");
    // Errors that would otherwise show only at the first message.
    room.write(
        "ctx.json5",
        "{ models: { providers: { a: { api: 'openai' }, b: { baseUrl: '127.0.0.1:8080' } } } }",
    );
    let ran = room.ctx(&["config", "check"]);
    assert_eq!(ran.code, Some(1));
    for words in ["models.providers.a.api", "models.providers.b.baseUrl", "http://"] {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
}

#[test]
fn only_check_reports_a_missing_final_newline() {
    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(3)).trim_end());
    let ran = room.ctx(&["status", text(&path)]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let ran = room.ctx(&["check", text(&path)]);
    assert!((ran.stdout + &ran.stderr).contains("no line break after the last line"));
}

#[test]
fn an_output_never_replaces_the_transcript() {
    let room = Room::new();
    let bytes = join(&pi_lines(3));
    let path = room.write("s.jsonl", &bytes);
    let file = text(&path);
    let detour = format!("{}/./s.jsonl", text(path.parent().expect("a file has a folder")));
    for out in [file, &detour] {
        for args in [
            &["replay", file, "--window", "32000", "--html", out][..],
            &["convert", file, "--to", "openai", "--output", out, "--force"],
            &["check", file, "--repair", "-o", out, "--force"],
        ] {
            room.refused(args, "would replace the transcript");
        }
    }
    assert_eq!(fs::read_to_string(&path).expect("still there"), bytes);
}

#[test]
fn check_refuses_a_config_from_which_no_engine_can_be_built() {
    let room = Room::new();
    for (config, words) in [
        ("{ plugins: { slots: { contextEngine: 'nope' } } }", "nope"),
        // Slots that no plugin can fill are unknown keys.
        ("{ plugins: { slots: { summarizer: 'x' } } }", "unknown key 'plugins.slots.summarizer'"),
        ("{ plugins: { slots: { embedder: 'x' } } }", "unknown key 'plugins.slots.embedder'"),
        (
            "{ agents: { defaults: { contextPruning: { mode: 'turn-age', hardClearRatio: -1 } } } }",
            "hardClearRatio",
        ),
    ] {
        room.write("ctx.json5", config);
        room.refused(&["config", "check"], words);
    }
}

//! `ctx engines check`: passing and failing engines, and the exit codes.

#[cfg(unix)]
use serde_json::Value;

#[cfg(unix)]
use crate::support::Ran;
use crate::support::{Room, text};

/// An engine in shell that always keeps the last four messages.
#[cfg(unix)]
const KEEPS_FOUR: &str = r#"#!/bin/sh
while read -r line; do
  rest=${line#*\"id\":}
  id=${rest%%[!0-9]*}
  case $line in
    *'"verb":"hello"'*)
      ok='{"protocol":"1.0","id":"four","name":"Four","version":"0.1.0"}' ;;
    *'"verb":"assemble"'*) ok='{"keepLast":4}' ;;
    *) ok='{}' ;;
  esac
  echo "{\"id\":$id,\"ok\":$ok}"
done
"#;

#[test]
fn the_default_engine_passes_and_the_report_lists_the_cases() {
    let report = Room::new().json(&["engines", "check", "legacy"]);
    assert_eq!((&report["ok"], &report["failed"]), (&true.into(), &0.into()), "{report}");
    assert_eq!(report["engine"]["carrier"], "builtin");
    assert_eq!(report["level"], "core");
    let rows = report["rows"].as_array().expect("rows");
    assert!(rows.iter().all(|row| row["level"] == "core"), "{report}");
    let keys: Vec<_> = rows[0].as_object().expect("a row").keys().cloned().collect();
    assert_eq!(keys, ["name", "level", "about", "result", "reason", "hint", "note"]);
}

#[cfg(unix)]
#[test]
fn a_script_is_checked_in_place_and_its_failures_are_reported() {
    let room = Room::new();
    let script = room.write("build/four.sh", KEEPS_FOUR);
    let before = room.files();
    let ran = room.ctx(&["engines", "check", text(&script), "--json"]);
    let report: Value = serde_json::from_str(&ran.stdout).expect(&ran.stderr);
    assert_eq!(report["engine"]["id"], "four");
    assert_eq!(report["engine"]["carrier"], "process");
    let rows = report["rows"].as_array().expect("rows");
    let result = |name: &str| rows.iter().find(|row| row["name"] == name).expect(name).clone();
    assert_eq!(result("hello")["note"], "four 0.1.0");
    // Four messages may exceed any window, so this case fails.
    assert_eq!(ran.code, Some(1), "{report}");
    let fit = result("answers-fit");
    assert_eq!(fit["result"], "failed", "{report}");
    assert!(fit["reason"].as_str().expect("a reason").contains("over-budget"), "{fit}");
    assert!(fit["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{fit}");
    assert_eq!(room.files(), before, "nothing is installed");
}

#[cfg(unix)]
#[test]
fn a_program_that_is_not_an_engine_fails_once_in_the_table() {
    let room = Room::new();
    let script = room.write("mute.sh", "#!/bin/sh\nexit 3\n");
    let ran = room.ctx(&["engines", "check", text(&script)]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stdout.contains("fault: crashed"), "{}", ran.stdout);
    assert!(ran.stdout.contains("\nhint: hello: "), "{}", ran.stdout);
    let summary = ran.stdout.lines().last().expect("a line");
    assert!(summary.starts_with("0 passed, 1 failed, 16 skipped"), "{summary}");
}

#[cfg(unix)]
#[test]
fn a_closed_pipe_does_not_change_the_exit_code() {
    let room = Room::new();
    let script = room.write("mute.sh", "#!/bin/sh\nexit 3\n");
    for args in
        [&["engines", "check", text(&script)][..], &["engines", "check", text(&script), "--json"]]
    {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let ran = Ran::of(room.command(args).stdout(writer));
        assert_eq!((ran.code, &*ran.stderr), (Some(1), ""), "{args:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_missing_interpreter_is_named() {
    let room = Room::new();
    let interpreter = format!("/no/{}/interp", "such/".repeat(40));
    let script = room.write("bad.sh", format!("#!{interpreter}\ncat\n"));
    let ran = room.ctx(&["engines", "check", text(&script)]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let said = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(&format!("missing: {interpreter}")), "{said}");
    assert!(said.contains("No such file or directory"), "{said}");
    assert!(said.contains(&format!("its first line requires {interpreter}: install it")), "{said}");
}

#[test]
fn invalid_engines_are_refused_before_anything_runs() {
    let room = Room::new();
    room.misused(&["engines", "check", "nobody"], "unknown context engine 'nobody'");
    let missing = room.path("missing.so");
    room.refused(&["engines", "check", text(&missing)], "missing.so");
    let prose = room.write("prose.so", "this is no library");
    room.refused(&["engines", "check", text(&prose)], "prose.so");
}

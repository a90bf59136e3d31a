//! Reports of a failing engine in this and in later commands, and the values that an engine stores.

use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Ran, Room, join, pi_lines, text};

/// An engine in shell, with a mode from its configuration. `bad`: every answer drops an unknown
/// message. `once`: only the first answer drops one. `gone`: the engine exits at `hello`. `store`:
/// it stores a value, and adds a line to the system prompt if the value was stored before.
const DEMO: &str = r#"#!/bin/sh
mode=good
while read -r line; do
  rest=${line#*\"id\":}
  id=${rest%%[!0-9]*}
  case $line in
    *'"verb":"hello"'*)
      case $line in
        *'"mode":"bad"'*) mode=bad ;;
        *'"mode":"once"'*) mode=once ;;
        *'"mode":"gone"'*) exit 3 ;;
        *'"mode":"store"'*) mode=store ;;
      esac
      ok='{"protocol":"1.0","id":"demo","name":"Demo","version":"0.1.0"}' ;;
    *'"verb":"assemble"'*)
      ok='{}'
      [ $mode = bad ] || [ $mode = once ] && ok='{"drop":["nobody"]}'
      [ $mode = once ] && mode=good
      if [ $mode = store ]; then
        echo '{"id":1,"host":"store.get","params":{"key":"../n"}}'
        read -r kept
        echo '{"id":2,"host":"store.put","params":{"key":"../n","value":"kept"}}'
        read -r done
        case $kept in
          *kept*) ok='{"systemPromptAddition":"I remember."}' ;;
        esac
      fi ;;
    *) ok='{}' ;;
  esac
  echo "{\"id\":$id,\"ok\":$ok}"
done
"#;

/// A room with a session, and the engine selected in one of its modes.
struct Stage {
    room: Room,
    session: PathBuf,
}

impl Stage {
    fn new() -> Self {
        let room = Room::new();
        let session = room.write("s.jsonl", join(&pi_lines(3)));
        let script = room.write("build/demo.sh", DEMO);
        let added = room.ctx(&["engines", "add", text(&script), "--yes"]);
        assert_eq!(added.code, Some(0), "{}", added.stderr);
        Self { room, session }
    }

    fn mode(&self, mode: &str) {
        self.configure(&format!("config: {{ mode: '{mode}' }}"));
    }

    fn configure(&self, engine: &str) {
        let config = "plugins: { slots: { contextEngine: 'demo' }, engines: { demo: { ENGINE } } }";
        let config = config.replace("ENGINE", engine);
        self.room.write("ctx.json5", format!("{{ {config} }}"));
    }

    fn run(&self, command: &str) -> Ran {
        self.room.ctx(&[command, text(&self.session)])
    }

    fn listed(&self) -> Value {
        let report = self.room.json(&["engines"]);
        let engines = report["engines"].as_array().expect("a list");
        engines.iter().find(|engine| engine["id"] == "demo").expect("it is listed").clone()
    }

    fn status(&self) -> Value {
        self.room.json(&["status", text(&self.session)])
    }

    fn health_file(&self) -> PathBuf {
        self.room.path("engines/health.json")
    }
}

/// Counts how often this text is on stderr.
fn said(ran: &Ran, words: &str) -> usize {
    ran.stderr.matches(words).count()
}

#[test]
fn an_engine_that_failed_is_degraded_in_later_commands_until_it_works() {
    use std::os::unix::fs::PermissionsExt;
    let stage = Stage::new();
    stage.mode("good");
    assert_eq!(stage.run("assemble").code, Some(0));
    assert!(!stage.health_file().exists(), "an engine that works has no record");
    stage.mode("bad");
    for strikes in 1..=2 {
        let ran = stage.run("assemble");
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(said(&ran, "warning:"), 1, "{}", ran.stderr);
        assert!(ran.stderr.contains("'nobody'") && ran.stderr.contains("'legacy' served"));
        let listed = stage.listed();
        assert_eq!(listed["state"], "degraded");
        let trouble = &listed["trouble"];
        assert_eq!(trouble["strikes"], strikes);
        assert_eq!(trouble["lastError"]["name"], "unknown-id");
        assert_eq!(
            (&trouble["lastError"]["verb"], &trouble["servedBy"]),
            (&json!("assemble"), &json!("legacy"))
        );
        assert!(trouble["at"].as_i64() > Some(1_700_000_000_000), "{trouble}");
    }
    let mode = stage.health_file().metadata().expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let status = stage.status();
    assert_eq!(status["engineState"], "degraded");
    assert_eq!(status["engineTrouble"]["strikes"], 2);
    let ran = stage.run("status");
    assert!(
        ran.stdout.contains("degraded: failed at 20") && ran.stdout.contains("2 times"),
        "{}",
        ran.stdout
    );
    let ran = stage.room.ctx(&["engines"]);
    assert!(ran.stdout.contains("degraded"), "{}", ran.stdout);
    assert_eq!(said(&ran, "'nobody'"), 1, "{}", ran.stderr);
    // A replay stops using it, with one warning.
    let ran = stage.run("replay");
    assert_eq!((ran.code, said(&ran, "warning:")), (Some(0), 1), "{}", ran.stderr);
    assert_eq!(stage.listed()["trouble"]["strikes"], 5);
    stage.mode("good");
    let ran = stage.run("replay");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert_eq!(stage.listed()["state"], "ok");
    assert_eq!(stage.listed()["trouble"], Value::Null);
    assert_eq!(stage.status()["engineState"], "ok");
}

#[test]
fn a_replay_reports_which_engine_assembled_the_requests() {
    let stage = Stage::new();
    let session = text(&stage.session);
    stage.mode("once");
    let ran = stage.run("replay");
    let said_so = "engine demo: answered 5 of 6 requests, legacy the others (unknown-id: ";
    assert!(ran.stdout.contains(said_so), "{}", ran.stdout);
    assert_eq!(said(&ran, "warning: the context engine 'demo' failed: "), 1, "{}", ran.stderr);
    let report = stage.room.json(&["replay", session]);
    assert_eq!((&report["engineAnswered"], &report["engineFailures"]), (&json!(5), &json!(1)));
    assert_eq!((&report["engine"], &report["standIn"]), (&json!("demo"), &json!("legacy")));
    assert!(report["standInReason"].as_str().is_some_and(|why| why.contains("'nobody'")));
    assert_eq!(report["warnings"].as_array().map(Vec::len), Some(1), "{}", report["warnings"]);
    stage.mode("bad");
    let ran = stage.run("replay");
    assert!(ran.stdout.contains("engine demo: answered 0 of 6 requests"), "{}", ran.stdout);
    stage.mode("good");
    let ran = stage.run("replay");
    assert!(!ran.stdout.contains("answered"), "{}", ran.stdout);
    let report = stage.room.json(&["replay", session]);
    assert_eq!((&report["engineAnswered"], &report["standIn"]), (&json!(6), &Value::Null));
    assert_eq!(report["warnings"], json!([]));
}

#[test]
fn the_json_of_a_command_has_the_health_of_its_engine() {
    let stage = Stage::new();
    let session = text(&stage.session);
    for (mode, answered, failures) in [("bad", 0, 1), ("good", 1, 0)] {
        stage.mode(mode);
        let report = stage.room.json(&["assemble", session]);
        let of = |key: &str| report[key].clone();
        assert_eq!(of("engine"), "demo");
        assert_eq!(
            (of("engineAnswered"), of("engineFailures")),
            (json!(answered), json!(failures))
        );
        assert_eq!(of("warnings").as_array().map(Vec::len), Some(failures), "{}", of("warnings"));
    }
    // The engine leaves compaction to another engine. Only an engine that does not start fails.
    for (mode, failures) in [("good", 0), ("gone", 1)] {
        stage.mode(mode);
        let report = stage.room.json(&["compact", session, "--dry-run"]);
        assert_eq!(
            (&report["engine"], &report["engineAnswered"], &report["engineFailures"]),
            (&json!("demo"), &json!(0), &json!(failures))
        );
        assert_eq!(report["warnings"].as_array().map(Vec::len), Some(failures));
    }
    let report = stage.room.json(&["compact", session, "--dry-run", "--engine", "legacy"]);
    assert_eq!((&report["engineAnswered"], &report["warnings"]), (&json!(1), &json!([])));
}

#[test]
fn quiet_does_not_suppress_warnings_about_engines() {
    let stage = Stage::new();
    stage.mode("bad");
    let ran = stage.room.ctx(&["replay", text(&stage.session), "-q"]);
    assert_eq!((ran.code, said(&ran, "warning:")), (Some(0), 1), "{}", ran.stderr);
    let ran = stage.room.ctx(&["compact", text(&stage.session), "--dry-run", "--force", "-q"]);
    assert_eq!((ran.code, said(&ran, "note:")), (Some(0), 0), "{}", ran.stderr);
}

#[test]
fn failures_of_another_engine_file_are_not_reported_for_this_one() {
    let stage = Stage::new();
    stage.mode("gone");
    let ran = stage.run("compact");
    assert_eq!((ran.code, said(&ran, "warning:")), (Some(0), 1), "{}", ran.stderr);
    assert_eq!(stage.listed()["trouble"]["lastError"]["verb"], "hello");
    let script = stage.room.write("build/demo.sh", format!("{DEMO}# newer\n"));
    let add = ["engines", "add", text(&script), "--yes", "--force"];
    assert_eq!(stage.room.ctx(&add).code, Some(0));
    assert_eq!(
        (&stage.listed()["state"], &stage.status()["engineState"]),
        (&json!("ok"), &json!("ok"))
    );
    stage.run("assemble");
    assert_eq!(stage.listed()["state"], "degraded");
    let remove = ["engines", "remove", "demo", "--yes"];
    assert_eq!(stage.room.ctx(&remove).code, Some(0));
    let left = std::fs::read_to_string(stage.health_file()).expect("it is there");
    assert!(!left.contains("demo"), "{left}");
}

#[test]
fn strict_failures_are_recorded() {
    let stage = Stage::new();
    stage.configure("onFailure: 'strict', config: { mode: 'bad' }");
    let ran = stage.run("assemble");
    assert_eq!((ran.code, said(&ran, "warning:")), (Some(1), 0), "{}", ran.stderr);
    assert!(ran.stderr.starts_with("error: "), "{}", ran.stderr);
    let trouble = &stage.listed()["trouble"];
    assert_eq!((&trouble["strikes"], &trouble["servedBy"]), (&json!(1), &Value::Null));
}

#[test]
fn damaged_or_unwritable_health_records_stop_no_command() {
    let stage = Stage::new();
    stage.mode("bad");
    for damaged in ["", "{\"version\":1,\"engines\":{\"demo\":", "[]", "{\"version\":9}"] {
        std::fs::write(stage.health_file(), damaged).expect("the file can be written");
        for command in ["status", "assemble"] {
            let ran = stage.run(command);
            assert_eq!(ran.code, Some(0), "{damaged}: {}", ran.stderr);
        }
        let ran = stage.room.ctx(&["engines"]);
        assert_eq!(ran.code, Some(0), "{damaged}: {}", ran.stderr);
        std::fs::write(stage.health_file(), damaged).expect("the file can be written");
        let ran = stage.run("status");
        assert_eq!(said(&ran, "the engine health file"), 1, "{damaged}: {}", ran.stderr);
    }
    std::fs::remove_file(stage.health_file()).expect("it is there");
    std::fs::create_dir(stage.health_file()).expect("the folder can be made");
    let ran = stage.run("assemble");
    assert_eq!(
        (ran.code, said(&ran, "the engine's health was not recorded")),
        (Some(0), 1),
        "{}",
        ran.stderr
    );
}

#[test]
fn an_engine_finds_its_stored_values_and_a_dry_run_stores_none() {
    let stage = Stage::new();
    stage.mode("store");
    let addition = |args: &[&str]| {
        let args: Vec<&str> =
            ["assemble", text(&stage.session)].iter().chain(args).copied().collect();
        stage.room.json(&args)["systemPromptAddition"].clone()
    };
    let store = stage.room.path("agents/main/store/engines/demo");
    assert_eq!(addition(&[]), Value::Null);
    assert_eq!(stage.run("replay").code, Some(0));
    assert!(!store.exists(), "neither command stores values");
    assert_eq!(addition(&["--record"]), Value::Null);
    assert_eq!(std::fs::read_dir(&store).expect("a folder").count(), 1);
    for args in [&[][..], &["--record"]] {
        assert_eq!(addition(args), "I remember.", "{args:?}");
    }
    assert_eq!(addition(&["--agent", "other"]), Value::Null, "each agent has its own values");
    let rpc = |id: &str| {
        let open = json!({"sessionId": id, "window": 40_000});
        let turns = [
            json!({"jsonrpc": "2.0", "id": 1, "method": "open", "params": open}),
            json!({"jsonrpc": "2.0", "id": 2, "method": "append", "params": {
                "sessionId": id, "messages": [{"role": "user", "content": "hello"}],
            }}),
            json!({"jsonrpc": "2.0", "id": 3, "method": "assemble", "params": {"sessionId": id}}),
        ];
        let input: String = turns.iter().map(|turn| format!("{turn}\n")).collect();
        let mut host = stage.room.command(&["rpc"]);
        let host = host.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut host = host.spawn().expect("the binary runs");
        host.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
        let output = host.wait_with_output().expect("it ends");
        let last = String::from_utf8_lossy(&output.stdout).lines().last().map(str::to_owned);
        let last: Value = serde_json::from_str(&last.expect("an answer")).expect("JSON");
        last["result"].clone()
    };
    std::fs::remove_dir_all(&store).expect("it is there");
    assert_eq!(rpc("r")["systemPromptAddition"], Value::Null);
    assert_eq!(rpc("r")["systemPromptAddition"], "I remember.", "another host, later");
    stage.mode("bad");
    let answer = rpc("r");
    assert_eq!(
        (&answer["engine"]["failing"], &answer["engine"]["standIn"]),
        (&json!(true), &json!("legacy"))
    );
    assert_eq!(stage.listed()["state"], "degraded");
    stage.mode("good");
    rpc("r");
    assert_eq!(stage.listed()["state"], "ok");
}

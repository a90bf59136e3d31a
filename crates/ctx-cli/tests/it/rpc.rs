//! `ctx rpc` with third-party hosts.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::plugins::{folder, has};
use crate::support::{Ran, Room, text};

const HOST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/rpc_host.py");

/// Sends text to `ctx rpc`, and returns its output.
fn rpc(room: &Room, input: &str) -> Ran {
    let mut child = room
        .command(&["rpc"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut stdin = child.stdin.take().expect("stdin is a pipe");
    stdin.write_all(input.as_bytes()).expect("the binary reads");
    drop(stdin);
    let output = child.wait_with_output().expect("the binary ends");
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Lets the Python host run an engine with this configuration. Returns what the host received;
/// `None` without Python.
fn python_drives(engine: &str, config: &Value) -> Option<Value> {
    if !has("python3") {
        return None;
    }
    let room = Room::new();
    room.write("home/ctx.json5", config.to_string());
    let home = room.path("home");
    let ran = Ran::of(
        Command::new("python3")
            .args([HOST, env!("CARGO_BIN_EXE_ctx"), engine, "16000"])
            .env("CTX_HOME", text(&home))
            .env("CTX_ENGINE_PATH", folder())
            .env("NO_COLOR", "1"),
    );
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let told: Value = serde_json::from_str(&ran.stdout).expect("the host says what it did");
    assert_eq!((&told["engine"], &told["exit"]), (&Value::from(engine), &Value::from(0)));
    assert!(told["requests"].as_u64() > Some(40) && told["reused"].as_u64() > Some(10), "{told}");
    Some(told)
}

#[test]
fn a_host_in_python_drives_legacy() {
    python_drives("legacy", &json!({}));
}

#[test]
fn a_host_in_python_drives_lossless_inside_of_ctx_and_apart() {
    for (engine, trust, carrier) in [
        ("lossless", "in-process", "dylib"),
        ("lossless", "process", "process"),
        ("lossless-process", "process", "process"),
    ] {
        // Every failure of the engine is an error, which ends the host.
        let engines = json!({ (engine): { "trust": trust, "onFailure": "strict" } });
        let Some(told) = python_drives(engine, &json!({ "plugins": { "engines": engines } }))
        else {
            return;
        };
        assert_eq!(told["carrier"], carrier, "{told}");
        let acted = told["acted"].as_array().expect("a list");
        assert!(acted.iter().any(|who| who == engine), "{told}");
    }
}

#[test]
fn the_end_of_input_without_a_call_is_a_success() {
    let ran = rpc(&Room::new(), "");
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "", ""));
}

#[test]
fn stdout_has_only_answers() {
    let ran = rpc(
        &Room::new(),
        "no json\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"open\",\"params\":{\"window\":20000}}\n",
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let answers: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(answers.len(), 2);
    assert_eq!(answers[0]["error"]["code"], -32700);
    // The warning about a small window is in the answer, for the host.
    let warning = answers[1]["result"]["warnings"][0].as_str().unwrap_or_default();
    assert!(warning.contains("low context window"), "{}", answers[1]);
}

/// The manual has a section for each method of the protocol, and no others.
#[test]
fn the_manual_has_every_method() {
    let manual = include_str!("../../../../docs/rpc.md");
    let sections: Vec<&str> =
        manual.lines().filter_map(|line| line.strip_prefix("### `")?.strip_suffix('`')).collect();
    let methods = ctx_server::rpc::Method::names();
    assert_eq!(sections, methods);
}

/// The manual's example session matches the actual output.
#[test]
fn the_example_session_of_the_manual_matches_the_output() {
    let manual = include_str!("../../../../docs/rpc.md");
    let shown = manual.split_once("```text\n").and_then(|(_, rest)| rest.split_once("```"));
    let lines: Vec<&str> = shown.expect("the manual shows a session").0.lines().collect();
    let side = |mark: &str| -> Vec<&str> {
        lines.iter().filter_map(|line| line.strip_prefix(mark)).collect()
    };
    let ran = rpc(&Room::new(), &format!("{}\n", side("> ").join("\n")));
    // Answers of different sessions may arrive in any order.
    let sorted = |mut answers: Vec<Value>| {
        answers.sort_by_key(|answer| answer["id"].as_u64());
        answers
    };
    let parse = |line: &str| serde_json::from_str::<Value>(line).expect("JSON");
    let said = sorted(ran.stdout.lines().map(parse).collect());
    assert_eq!(said, sorted(side("< ").into_iter().map(parse).collect()));
    assert!(said.len() >= 10);
}

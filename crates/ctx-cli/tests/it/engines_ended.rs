//! Engines and their copies end and are removed when ctx is ended.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::interrupted::is_ignored;
use crate::support::{Room, join, pi_lines, text};

/// An engine that opens a pipe on a request and then hangs, as its child process does. A process
/// that outlives ctx writes to the pipe at its end.
const HANGS: &str = r#"#!/bin/sh
while read -r line; do
  rest=${line#*\"id\":}
  id=${rest%%[!0-9]*}
  case $line in
    *'"verb":"hello"'*)
      echo "{\"id\":$id,\"ok\":{\"protocol\":\"1.0\",\"id\":\"hangs\",\"name\":\"Hangs\",\"version\":\"1\"}}" ;;
    *'"verb":"assemble"'*)
      exec 3>PIPE
      (sleep 60; echo child >&3) &
      sleep 60
      echo engine >&3 ;;
    *) echo "{\"id\":$id,\"ok\":{}}" ;;
  esac
done
"#;

struct Hanging {
    room: Room,
    pipe: PathBuf,
    script: PathBuf,
}

impl Hanging {
    fn new() -> Self {
        let room = Room::new();
        let pipe = room.path("pipe");
        let made = Command::new("mkfifo").arg(&pipe).status().expect("there is mkfifo");
        assert!(made.success());
        let script = room.write("hangs.sh", HANGS.replace("PIPE", text(&pipe)));
        let config =
            json!({"plugins": {"engines": {"hangs": {"deadlinesMs": {"assemble": 600_000}}}}});
        room.write("ctx.json5", config.to_string());
        Self { room, pipe, script }
    }

    fn install(&self) {
        let ran =
            self.room.ctx(&["engines", "add", text(&self.script), "--name", "hangs", "--yes"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }

    /// Runs ctx until its engine hangs, sends a signal, and waits for ctx to end. Returns the later
    /// output of the engine's processes, which is empty if all of them were ended.
    fn ended(&self, signal: &str, mut child: Child) -> String {
        let mut pipe = File::open(&self.pipe).expect("the engine opens its end");
        let sent = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
        assert!(sent.expect("a signal is sent").success());
        let ended = child.wait().expect("it ends");
        assert_eq!(ended.code(), None, "by the signal: {ended}");
        let mut said = String::new();
        pipe.read_to_string(&mut said).expect("it is read");
        said
    }
}

#[test]
fn no_engine_outlives_a_replay_that_a_signal_ends() {
    let hanging = Hanging::new();
    hanging.install();
    let session = hanging.room.write("s.jsonl", join(&pi_lines(4)));
    for signal in ["INT", "TERM", "HUP", "KILL"].into_iter().filter(|s| !is_ignored(s)) {
        let args = ["replay", text(&session), "--window", "32000", "--engine", "hangs"];
        let child =
            hanging.room.command(&args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut child = child.expect("the binary runs");
        let mut stderr = child.stderr.take().expect("a pipe");
        assert_eq!(hanging.ended(signal, child), "", "{signal}");
        let mut said = String::new();
        stderr.read_to_string(&mut said).expect("it is read");
        assert_eq!(said, "", "{signal}: the end of the engine is not reported as a failure");
    }
}

#[test]
fn no_engine_outlives_an_rpc_host_that_a_signal_ends() {
    let hanging = Hanging::new();
    hanging.install();
    for signal in ["TERM", "KILL"] {
        let mut command = hanging.room.command(&["rpc"]);
        let child =
            command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut child = child.expect("the binary runs");
        let mut stdin = child.stdin.take().expect("a pipe");
        let message = json!([{"role": "user", "content": "hi"}]);
        for (method, params) in [
            ("open", json!({"sessionId": "s", "engine": "hangs", "window": 32_000})),
            ("append", json!({"sessionId": "s", "messages": message})),
            ("assemble", json!({"sessionId": "s"})),
        ] {
            let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            writeln!(stdin, "{call}").expect("it listens");
        }
        assert_eq!(hanging.ended(signal, child), "", "{signal}");
    }
}

#[test]
fn a_check_ended_by_a_signal_leaves_no_engine_and_no_copy() {
    let hanging = Hanging::new();
    let folder = hanging.room.path("tmp");
    fs::create_dir(&folder).expect("a folder");
    for signal in ["INT", "TERM", "HUP"].into_iter().filter(|s| !is_ignored(s)) {
        let args = ["engines", "check", text(&hanging.script), "--name", "hangs"];
        let mut command = hanging.room.command(&args);
        let child =
            command.env("TMPDIR", &folder).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        assert_eq!(hanging.ended(signal, child.expect("the binary runs")), "", "{signal}");
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 0, "{signal}");
    }
}

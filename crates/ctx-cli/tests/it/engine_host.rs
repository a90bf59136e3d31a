//! `ctx engine-host`: an engine library in its own process.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::support::Room;

/// The binary, serving the C engine of the registry's tests, whose verbs select what it does.
struct Hosted {
    _room: Room,
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

fn library(room: &Room) -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let library = room.path("libtold.so");
    let built = Command::new("cc")
        .args(["-std=gnu11", "-shared", "-fPIC", "-pthread", "-o"])
        .arg(&library)
        .arg("-I")
        .arg(crates.join("ctx-engine-sdk/include"))
        .arg(crates.join("ctx-engine-registry/tests/it/carriers/fixtures/told.c"))
        .status();
    assert!(built.expect("a C compiler").success());
    library
}

impl Hosted {
    fn start() -> Self {
        let room = Room::new();
        let library = library(&room);
        let mut process = room
            .command(&["engine-host"])
            .arg(library)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().expect("a pipe"));
        Self { _room: room, process, input, output }
    }

    fn tell(&mut self, line: &Value) {
        let input = self.input.as_mut().expect("it is open");
        writeln!(input, "{line}").expect("it listens");
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: '{line}'"))
    }

    fn call(&mut self, id: u64, verb: &str) {
        self.tell(&json!({"id": id, "verb": verb, "params": {}}));
    }

    /// Closes its stdin. Returns whether it exited successfully, and its stderr.
    fn end(mut self) -> (bool, String) {
        self.input = None;
        let output = self.process.wait_with_output().expect("it ends");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

#[test]
fn a_library_is_served_line_by_line_until_stdin_ends() {
    let mut hosted = Hosted::start();
    hosted.call(1, "hello");
    assert_eq!(hosted.hear(), json!({"id": 1, "ok": {"unreleased": 0}}));
    hosted.call(2, "count");
    let asked = hosted.hear();
    assert_eq!((&asked["host"], &asked["id"]), (&json!("tokens.count"), &json!(5)));
    hosted.tell(&json!({"id": 5, "reply": {"tokens": [2]}}));
    assert_eq!(hosted.hear()["ok"]["said"]["reply"]["tokens"], json!([2]));
    assert_eq!(hosted.end(), (true, String::new()));
}

#[test]
fn output_printed_by_a_library_is_not_in_its_answers() {
    let mut hosted = Hosted::start();
    hosted.call(1, "print");
    assert_eq!(hosted.hear(), json!({"id": 1, "ok": "printed"}));
    let (is_well, stderr) = hosted.end();
    assert!(is_well);
    assert_eq!(stderr, "a line outside of the protocol\n");
}

#[test]
fn a_call_in_a_library_can_be_cancelled() {
    let mut hosted = Hosted::start();
    hosted.call(1, "hello");
    hosted.hear();
    hosted.call(2, "count");
    let asked = hosted.hear();
    hosted.tell(&json!({"cancel": 1}));
    hosted.tell(&json!({"id": asked["id"], "reply": {}}));
    assert_eq!(hosted.hear()["ok"]["status"], 0, "another call was cancelled");
    hosted.call(3, "announce_and_wait");
    assert_eq!(hosted.hear()["host"], "tokens.count", "the call is running");
    hosted.tell(&json!({"id": 5, "reply": {}}));
    hosted.tell(&json!({"cancel": 3}));
    assert_eq!(hosted.hear()["error"]["kind"], "cancelled");
    assert!(hosted.end().0);
}

#[test]
fn a_library_that_hangs_ends_with_the_stdin_of_its_process() {
    let mut hosted = Hosted::start();
    hosted.call(1, "announce_and_stick");
    assert_eq!(hosted.hear()["host"], "tokens.count", "the call is running");
    hosted.tell(&json!({"id": 5, "reply": {}}));
    assert!(hosted.end().0);
}

#[test]
fn an_unusable_library_ends_its_process_with_the_reason() {
    let mut hosted = Hosted::start();
    hosted.call(1, "huge");
    assert_eq!(hosted.hear()["error"]["kind"], "failed");
    hosted.call(2, "panicked");
    assert_eq!(hosted.hear()["error"]["kind"], "panic");
    let (is_well, stderr) = hosted.end();
    assert!(!is_well);
    assert!(stderr.contains("cannot be used again"), "{stderr}");
}

#[test]
fn a_file_that_is_not_a_library_is_refused_with_the_reason() {
    let room = Room::new();
    let text = room.write("text.so", "a text");
    let ran = room.ctx(&["engine-host", text.to_str().expect("a path")]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("cannot load the library"), "{}", ran.stderr);
    assert_eq!(ran.stdout, "");
}

#[test]
fn help_does_not_list_engine_host() {
    let help = Room::new().ctx(&["--help"]).stdout;
    assert!(help.contains("engines"), "{help}");
    assert!(!help.contains("engine-host"), "{help}");
}

#[test]
fn a_library_without_a_table_is_reported() {
    let room = Room::new();
    let source = room.write("null.c", "const void *ctx_engine_v1(void) { return 0; }\n");
    let library = room.path("libnull.so");
    let built =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).status();
    assert!(built.expect("a C compiler").success());
    let path = library.to_str().expect("UTF-8");
    let ran = room.ctx(&["engine-host", path]);
    assert_eq!((ran.code, &*ran.stdout), (Some(1), ""), "{}", ran.stderr);
    assert!(ran.stderr.starts_with("error: ctx_engine_v1 returned no table"), "{}", ran.stderr);
    assert!(ran.stderr.contains("ctx_engine.h"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("standard output"), "{}", ran.stderr);
    let ran = room.ctx(&["engines", "check", path]);
    let said = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("error: ctx_engine_v1 returned no table"), "{said}");
}

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use ctx_engine_registry::find::{EngineFile, FoundEngine, Search};
use serde_json::{Value, json};

use super::*;

/// Builds a plugin that does not need cargo, and finds it with the registry.
fn built(name: &str, folder: &Path) -> FoundEngine {
    let wanted = Wanted { only: Some(name.into()), ..Wanted::default() };
    let plugins = wanted.plugins().expect("a known plugin");
    for file in build::build(&plugins, false).expect("a built plugin") {
        lay::lay(folder, &file).expect("a folder of the plugin");
    }
    Search::default().with_list(folder.as_os_str()).find(name).expect("a valid plugin")
}

/// Whether a program is installed. In CI, panics if it is missing.
#[expect(clippy::print_stderr, reason = "reports that the test is skipped")]
fn has(program: &str) -> bool {
    let is_there = Command::new(program).arg("--version").output().is_ok();
    assert!(is_there || std::env::var_os("CI").is_none(), "a test in CI needs {program}");
    if !is_there {
        eprintln!("skipped: {program} is missing");
    }
    is_there
}

fn answers(mut command: Command, calls: &[String]) -> Vec<Value> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the plugin runs");
    let mut input = child.stdin.take().expect("a pipe");
    let text = calls.join("\n") + "\n";
    input.write_all(text.as_bytes()).expect("the plugin reads");
    drop(input);
    let Output { status, stdout, stderr } = child.wait_with_output().expect("the plugin ends");
    assert!(status.success(), "{status}: {}", String::from_utf8_lossy(&stderr));
    let lines = stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).expect("JSON")).collect()
}

fn call(id: u64, verb: &str, params: &Value) -> String {
    json!({"id": id, "verb": verb, "params": params}).to_string()
}

fn hello() -> String {
    call(1, "hello", &json!({"protocol": "1.0", "isNew": {"verb": "dance", "id": [7]}}))
}

/// Calls a plugin in C from a host in C.
fn call_library(found: &FoundEngine, folder: &Path, calls: &[String]) -> Vec<Value> {
    let EngineFile::Library(library) = &found.file else { panic!("a library") };
    let host = folder.join("call");
    let built = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(crate::root().join("crates/ctx-engine-sdk/include"))
        .arg(crate::root().join("xtask/src/plugins/call.c"))
        .arg("-o")
        .arg(&host)
        .arg("-ldl")
        .status();
    assert!(built.expect("a C compiler").success());
    let mut command = Command::new(host);
    command.arg(library);
    answers(command, calls)
}

#[test]
fn the_engine_in_c_answers_every_call_through_its_table() {
    let room = tempfile::tempdir().unwrap();
    let found = built("c-minimal", room.path());
    let swapped = r#" {"params":{"a":"}\"]","b":[{"id":3,"verb":"x"}],"update":{"added":[{"id":"\\"tokens\\":9","tokens":30},{"tokens":20},{"tokens": 25}]},"budget":{"window":90,"messages":74}}, "verb" : "assemble", "id":18446744073709551615 }"#;
    let said = call_library(
        &found,
        room.path(),
        &[
            hello(),
            swapped.into(),
            call(4, "compact", &json!({})),
            call(5, "maintain", &json!({})),
            "{\"id\":6".into(),
            "\"id\"".into(),
            "{\"verb\":\"\\".into(),
            format!("{{\"x\":{}", "[".repeat(100_000)),
            String::from("[]}"),
            call(7, "dispose", &json!(null)),
        ],
    );
    let info = &said[0]["ok"];
    assert_eq!((&info["id"], &info["contents"]), (&json!("c-minimal"), &json!(false)));
    assert!(info["remembers"].is_null(), "the host sends all rows each time");
    assert_eq!((&said[1]["id"], &said[1]["ok"]["keepLast"]), (&json!(u64::MAX), &json!(1)));
    assert_eq!((&said[2]["ok"]["ok"], &said[2]["ok"]["compacted"]), (&json!(false), &json!(false)));
    assert_eq!(said[3]["error"]["kind"], "unsupported");
    assert!(said[4..9].iter().all(|said| said["error"]["kind"] == "badRequest"), "{said:?}");
    assert_eq!(said[9], json!({"id": 7, "ok": {}}));
}

#[test]
fn the_engine_in_python_keeps_whole_groups_that_fit() {
    if !has("python3") {
        return;
    }
    let room = tempfile::tempdir().unwrap();
    let found = built("python-echo", room.path());
    let EngineFile::Command { program, args } = &found.file else { panic!("a command") };
    let mut command = Command::new(program);
    command.args(args);
    let row = |id: &str, group: u64, keep: bool| json!({"id": id, "group": group, "keep": keep, "tokens": 10});
    let rows = [
        row("s", 0, true),
        row("é", 1, false),
        row("call", 2, false),
        row("result", 2, false),
        row("new", 3, false),
    ];
    let assemble = |id: u64, room: u64| {
        call(
            id,
            "assemble",
            &json!({"sessionId": "s", "budget": {"messages": room},
            "update": {"reset": true, "rows": rows.len(), "added": rows}}),
        )
    };
    let said = answers(
        command,
        &[
            hello(),
            assemble(2, 100),
            assemble(3, 45),
            assemble(4, 35),
            json!({"cancel": 4}).to_string(),
            call(5, "dance", &json!({})),
            "[1".into(),
            call(6, "hello", &json!({"protocol": "2.0"})),
        ],
    );
    let kept = |at: usize| -> Vec<&str> {
        let messages = said[at]["ok"]["messages"].as_array();
        messages.into_iter().flatten().filter_map(|message| message["id"].as_str()).collect()
    };
    assert_eq!(said[0]["ok"]["id"], "python-echo");
    assert_eq!(kept(1), ["s", "é", "call", "result", "new"]);
    assert_eq!(kept(2), ["s", "call", "result", "new"]);
    assert_eq!(kept(3), ["s", "new"], "no call without its result");
    let kinds: Vec<_> = said[4..].iter().map(|said| said["error"]["kind"].as_str()).collect();
    assert_eq!(kinds, [Some("unsupported"), Some("badRequest"), Some("protocol")]);
}

#[test]
fn what_is_asked_for_is_told_from_what_is_not_there() {
    let read = |args: &[&str]| Wanted::read(args.iter().map(|arg| (*arg).to_owned()));
    assert_eq!(read(&[]).unwrap().plugins().unwrap().len(), PLUGINS.len());
    let one = read(&["--release", "--only", "chaos"]).unwrap();
    assert!(one.release);
    assert_eq!(one.plugins().unwrap()[0].name, "chaos");
    assert!(read(&["--only"]).is_err());
    assert!(read(&["--fast"]).is_err());
    let others = read(&["--skip", "chaos"]).unwrap().plugins().unwrap();
    assert!(others.len() == PLUGINS.len() - 1 && others.iter().all(|one| one.name != "chaos"));
    for option in ["--only", "--skip"] {
        let error = read(&[option, "x"]).unwrap().plugins().unwrap_err().to_string();
        assert!(error.contains("c-minimal, chaos"), "{error}");
    }
}

#[test]
fn every_folder_in_plugins_is_built() {
    let folders = std::fs::read_dir(crate::root().join("plugins")).unwrap();
    let mut names: Vec<String> =
        folders.map(|folder| folder.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, PLUGINS.map(|plugin| plugin.name));
}

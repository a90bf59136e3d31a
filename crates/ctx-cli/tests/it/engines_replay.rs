//! Replays with each plugin, selected by the configuration alone.

use std::path::Path;

use serde_json::{Value, json};

use crate::plugins::{folder, has};
use crate::support::{Ran, Room, data, text};

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/fix-flaky-test.jsonl");

/// Replays a session with an engine that only `ctx.json5` names, with these `settings`.
fn replayed(session: &Path, engine: &str, settings: &Value) -> (Value, String) {
    let room = Room::new();
    let slots = json!({ "contextEngine": engine });
    let config = json!({ "plugins": { "slots": slots, "engines": { (engine): settings } } });
    room.write("ctx.json5", config.to_string());
    let mut command = room.command(&["replay", text(session), "--window", "32000", "--json"]);
    let ran = Ran::of(command.env("CTX_ENGINE_PATH", folder()));
    assert_eq!(ran.code, Some(0), "{engine} {settings}: {}", ran.stderr);
    let report: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(report["engine"], engine);
    let totals = &report["totals"];
    assert!(totals["overflowsWithout"].as_u64() > Some(100), "{engine}: {totals}");
    assert_eq!(totals["overflowsWith"], 0, "{engine} {settings}: {totals}");
    (report, ran.stderr)
}

/// Whether the engine or layer `who` changed a request.
fn acted(report: &Value, who: &str) -> bool {
    report["acted"].as_array().expect("a list").iter().any(|name| name == who)
}

/// Runs a check on the recorded session, if available, and on the session of this repository.
fn each_session(check: impl Fn(&Path)) {
    check(Path::new(SAMPLE));
    if let Some(recorded) = data("pi/before-compaction.jsonl") {
        check(&recorded);
    }
}

/// Checks that each transport serves all requests, with equal results.
#[track_caller]
fn serves(carriers: &[(&str, Value)]) {
    each_session(|session| {
        let mut sent = Vec::new();
        for (engine, settings) in carriers {
            let (report, stderr) = replayed(session, engine, settings);
            assert!(acted(&report, engine), "{engine} {settings}: {}", report["acted"]);
            // C-minimal does not count the host's additions. One request of the recorded session is
            // too large because of that, and the default engine assembles it.
            let mut warnings = stderr.lines().filter(|line| line.contains("warning"));
            let is_borne = |line: &str| *engine == "c-minimal" && line.contains("leaves 17242");
            assert!(warnings.all(is_borne), "{engine} {settings}: {stderr}");
            let tokens = |request: &Value| request["sentTokens"].as_u64();
            let requests = report["requests"].as_array().expect("a list");
            sent.push(requests.iter().map(tokens).collect::<Vec<_>>());
        }
        assert!(sent.iter().all(|one| *one == sent[0]), "{carriers:?} differ");
    });
}

fn in_process() -> Value {
    json!({ "trust": "in-process" })
}

#[test]
fn sliding_window_makes_the_same_requests_over_each_transport() {
    let apart = ("sliding-window-process", json!({}));
    serves(&[("sliding-window", in_process()), ("sliding-window", json!({})), apart]);
}

#[test]
fn lossless_makes_the_same_requests_over_each_transport() {
    serves(&[("lossless", in_process()), ("lossless", json!({})), ("lossless-process", json!({}))]);
}

#[test]
fn the_list_of_compactions_names_their_engine() {
    let room = Room::new();
    let session = room.write("s.jsonl", std::fs::read(SAMPLE).expect("it is there"));
    let args = ["compact", text(&session), "--engine", "lossless", "--window", "32000", "--json"];
    let mut command = room.command(&args);
    let ran = Ran::of(command.env("CTX_ENGINE_PATH", folder()));
    let done: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(done["result"]["details"]["engine"], "lossless", "{done}");
    let listed = room.ctx(&["compactions", text(&session)]).stdout;
    assert!(listed.contains(" lossless "), "{listed}");
}

#[test]
fn an_engine_in_c_makes_the_requests() {
    if has("cc") {
        serves(&[("c-minimal", in_process()), ("c-minimal", json!({}))]);
    }
}

#[test]
fn an_engine_in_python_makes_the_requests() {
    if has("python3") {
        serves(&[("python-echo", json!({}))]);
    }
}

/// Checks that the default engine replaces chaos, and that a warning gives the reason.
#[track_caller]
fn is_replaced(engine: &str, trust: &str, faults: &[(&str, &str)]) {
    each_session(|session| {
        let (alone, _) = replayed(session, "legacy", &json!({}));
        for (fault, reason) in faults {
            // A hang runs into the deadline; other faults have enough time.
            let deadline = if *fault == "hang" { 500 } else { 60_000 };
            let settings = json!({
                "trust": trust,
                "config": { "fault": fault },
                "compaction": "host",
                "deadlinesMs": { "assemble": deadline },
            });
            let (report, stderr) = replayed(session, engine, &settings);
            assert!(!acted(&report, engine), "{fault}: {}", report["acted"]);
            assert_eq!(report["totals"], alone["totals"], "{fault}");
            let mut warnings = stderr.lines().filter(|line| line.contains("warning"));
            let says = |line: &str| line.contains(engine) && line.contains(reason);
            assert!(warnings.any(says), "{fault}: {stderr}");
        }
    });
}

#[test]
fn the_default_engine_replaces_a_process_that_fails() {
    let ends = [
        ("abort", "SIGABRT"),
        ("segfault", "SIGSEGV"),
        ("panic", "panicked: chaos: a panic was ordered"),
        ("garbage", "broke the protocol"),
        ("split-pair", "separates a tool call from its results"),
    ];
    // Other systems report an exit by its code.
    let ends = if cfg!(unix) { &ends[..] } else { &ends[2..] };
    is_replaced("chaos", "process", ends);
    is_replaced("chaos-process", "process", ends);
}

#[test]
fn the_default_engine_replaces_an_in_process_library_that_fails() {
    is_replaced(
        "chaos",
        "in-process",
        &[
            ("panic", "panicked: chaos: a panic was ordered"),
            ("hang", "did not answer 'assemble' within 500ms"),
            ("unknown-row", "unknown row"),
        ],
    );
}

#[cfg(unix)]
#[test]
fn the_warning_in_the_docs_matches_the_output() {
    let settings = json!({ "config": { "fault": "abort" } });
    let (_, stderr) = replayed(Path::new(SAMPLE), "chaos", &settings);
    let said = stderr.lines().find(|line| line.starts_with("warning")).expect("a warning");
    assert!(include_str!("../../../../docs/engines.md").contains(said), "{said}");
}

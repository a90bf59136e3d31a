//! `ctx eval recall`, over conversations written for the test.

#[cfg(unix)]
use std::process::Command;

use ctx_testkit::provider::{Api, FailureKind, FakeProvider, Step, When};
#[cfg(unix)]
use serde_json::Value;
use serde_json::json;

#[cfg(unix)]
use crate::support::Ran;
use crate::support::{Room, text};

/// Three sessions of two people, with questions, in the format of LoCoMo.
fn room(provider: Option<&FakeProvider>) -> Room {
    let room = Room::new();
    let turn =
        |id: &str, who: &str, text: &str| json!({"dia_id": id, "speaker": who, "text": text});
    let question = |text: &str, evidence: &str, category: u32| json!({"question": text, "evidence": [evidence], "category": category});
    let own = json!([{
        "sample_id": "one",
        "conversation": {
            "speaker_a": "Ann", "speaker_b": "Bob",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [turn("D1:1", "Ann", "Which pet did you adopt?"), turn("D1:2", "Bob", "A beagle")],
            "session_2_date_time": "1:56 pm on 9 May, 2023",
            "session_2": [turn("D2:1", "Bob", "I bought a piano"), turn("D2:2", "Ann", "The garden needs rain")],
        },
        "qa": [
            question("What did Bob buy?", "D2:1", 4),
            question("What does the garden need?", "D2:2", 1),
            question("Who sold the piano?", "D2:1", 5),
        ],
    }]);
    room.write("own.json", own.to_string());
    if let Some(provider) = provider {
        let config = json!({
            "agents": {"defaults": {"memoryContext": {
                "embeddingSource": "fake/vec", "embeddingDimensions": 64,
            }}},
            "models": {"providers": {"fake": {
                "baseUrl": provider.v1(), "api": "openai-completions", "apiKey": "none", "models": [],
            }}},
        });
        room.write("ctx.json5", config.to_string());
    }
    room
}

/// Runs the binary without any space for files.
#[cfg(unix)]
fn on_a_full_disk(room: &Room, args: &[&str]) -> Ran {
    let ctx = room.command(args);
    let mut full = Command::new("sh");
    full.args(["-c", "ulimit -f 0 && exec \"$0\" \"$@\""]).arg(ctx.get_program());
    full.args(ctx.get_args()).env("CTX_HOME", room.path("."));
    Ran::of(&mut full)
}

fn args<'a>(own: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["eval", "recall", "--dataset", "locomo", own], more].concat()
}

#[test]
fn custom_conversations_are_measured_and_figures_have_stable_names() {
    let room = room(None);
    let own = room.path("own.json");
    let report = room.json(&args(text(&own), &[]));
    assert_eq!((&report["questions"], &report["skipped"]), (&json!(2), &json!(0)), "{report}");
    assert_eq!(report["recall"]["10"], 1.0, "{report}");
    for key in ["1", "5", "20", "50"] {
        assert!(report["recall"][key].is_number(), "{key}: {report}");
        assert!(report["tantivy"][key].is_number(), "{key}: {report}");
    }
    for key in ["mrr", "ndcg10", "coverage4000"] {
        assert!(report[key].as_f64() > Some(0.0), "{key}: {report}");
    }
    assert_eq!(report["byCategory"]["adversarial"]["questions"], 1, "{report}");
    let shown = room.ctx(&args(text(&own), &[]));
    assert!(shown.stdout.contains("R@10") && shown.stdout.contains("100.0"), "{}", shown.stdout);
    room.refused(&args("nowhere.json", &[]), "nowhere.json");
}

#[test]
fn a_server_computes_vectors_once_and_the_next_run_reads_them() {
    let provider = FakeProvider::builder().start().expect("it starts");
    let room = room(Some(&provider));
    let (own, cache) = (room.path("own.json"), room.path("kept/vectors"));
    let http = ["--embedder", "http", "--cache", text(&cache)];
    let first = room.json(&args(text(&own), &http));
    assert!(first["embedder"].as_str().is_some_and(|name| name.contains("fake/vec")), "{first}");
    assert_eq!(first["recall"]["10"], 1.0, "{first}");
    let asked = provider.count();
    assert!(asked > 0);
    assert_eq!(room.json(&args(text(&own), &http)), first);
    assert_eq!(provider.count(), asked, "nothing is embedded again");
}

#[test]
fn a_failing_or_unconfigured_server_is_a_clear_error() {
    let down = Step::error(FailureKind::ServerError).always();
    let down = down.when(When { api: Some(Api::Embeddings), ..When::default() });
    let provider = FakeProvider::builder().script([down]).start().expect("it starts");
    let site = room(Some(&provider));
    let own = site.path("own.json");
    site.refused(&args(text(&own), &["--embedder", "http"]), "fake/vec");
    let site = room(None);
    let own = site.path("own.json");
    site.refused(&args(text(&own), &["--embedder", "http"]), "embeddingSource");
}

#[cfg(unix)]
#[test]
fn unwritable_vectors_cause_a_warning_and_figures_are_printed() {
    let provider = FakeProvider::builder().start().expect("it starts");
    let room = room(Some(&provider));
    let own = room.path("own.json");
    // A folder is at the path of the file, and a file at the path of its folder.
    let in_a_file = own.join("vectors");
    for (place, is_full) in
        [(room.path("."), false), (in_a_file, false), (room.path("vectors"), true)]
    {
        let more = ["--embedder", "http", "--json", "--cache", text(&place)];
        let all = args(text(&own), &more);
        let ran = match is_full {
            true => on_a_full_disk(&room, &all),
            false => room.ctx(&all),
        };
        assert_eq!(ran.code, Some(0), "{place:?}: {}", ran.stderr);
        let report: Value = serde_json::from_str(&ran.stdout).expect("JSON");
        assert_eq!(report["questions"], 2, "{place:?}");
        let warned = ran.stderr.lines().filter(|line| line.starts_with("warning")).count();
        assert!(
            warned == 1 && ran.stderr.contains("cannot write the vector cache"),
            "{}",
            ran.stderr
        );
    }
}

//! `ctx engines`: lists, installs, removes and rejects engines.

use serde_json::{Value, json};

use crate::support::{Ran, Room, join, pi_lines, text};

const SCRIPT: &str = "#!/bin/sh\nexit 0\n";

/// Returns the entry of an engine in `ctx engines`.
#[cfg(unix)]
fn listed(room: &Room, id: &str) -> Option<Value> {
    let report = room.json(&["engines"]);
    let engines = report["engines"].as_array().expect("a list");
    engines.iter().find(|engine| engine["id"] == id).cloned()
}

#[cfg(unix)]
fn add(room: &Room, args: &[&str]) -> Value {
    let args: Vec<&str> = ["engines", "add"].iter().chain(args).copied().collect();
    room.json(&args)
}

#[cfg(unix)]
#[test]
fn an_engine_is_added_listed_selected_and_removed() {
    use std::os::unix::fs::PermissionsExt;
    let room = Room::new();
    let script = room.write("build/My_Engine.sh", SCRIPT);
    let added = add(&room, &[text(&script), "--yes"]);
    assert_eq!((&added["id"], &added["kind"]), (&"my-engine".into(), &"script".into()));
    let config = added["config"].as_str().expect("a snippet");
    let found = listed(&room, "my-engine").expect("it is listed");
    assert_eq!((&found["state"], &found["carrier"]), (&"ok".into(), &"process".into()));
    assert_eq!(found["selected"], false);
    for (file, mode) in [("My_Engine.sh", 0o700), ("my-engine.toml", 0o600), ("", 0o700)] {
        let metadata = room.path("engines/my-engine").join(file).metadata().expect(file);
        assert_eq!(metadata.permissions().mode() & 0o777, mode, "{file}");
    }
    // The snippet is valid configuration, and selects the engine.
    room.write("ctx.json5", format!("{{ {config} }}"));
    let report = room.json(&["engines"]);
    assert_eq!(report["selected"]["id"], "my-engine");
    assert_eq!(report["selected"]["source"], "global");
    assert_eq!(listed(&room, "my-engine").expect("it is there")["selected"], true);
    let ran = room.ctx(&["engines", "remove", "my-engine", "--yes"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("plugins.slots.contextEngine still names"), "{}", ran.stderr);
    assert_eq!(listed(&room, "my-engine"), None);
    let left = std::fs::read_dir(room.path("engines")).expect("the folder").count();
    assert_eq!(left, 0, "nothing is left");
    room.refused(&["engines", "remove", "my-engine", "--yes"], "no engine 'my-engine'");
}

#[cfg(unix)]
#[test]
fn without_confirmation_nothing_is_installed_or_removed() {
    let room = Room::new();
    let script = room.write("tool.sh", SCRIPT);
    let before = room.files();
    let ran = room.ctx(&["engines", "add", text(&script)]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("--yes"), "{}", ran.stderr);
    assert!(ran.stderr.contains("sha256") && ran.stderr.contains("a script"), "{}", ran.stderr);
    assert_eq!(room.files(), before);
    add(&room, &[text(&script), "--yes", "--name", "demo"]);
    let before = room.files();
    room.refused(&["engines", "remove", "demo"], "no terminal to ask for confirmation:");
    assert_eq!(room.files(), before);
}

#[cfg(unix)]
#[test]
fn an_installed_engine_is_replaced_only_with_force() {
    let room = Room::new();
    let script = room.write("demo.sh", SCRIPT);
    let first = add(&room, &[text(&script), "--yes"]);
    room.write("demo.sh", "#!/bin/sh\nexit 1\n");
    room.refused(&["engines", "add", text(&script), "--yes"], "installed already");
    let second = add(&room, &[text(&script), "--yes", "--force"]);
    assert_ne!(first["sha256"], second["sha256"]);
    assert_eq!(listed(&room, "demo").expect("it is there")["state"], "ok");
    let left = std::fs::read_dir(room.path("engines")).expect("the folder").count();
    assert_eq!(left, 1, "the old folder was removed");
    // An installed folder can be installed again, elsewhere.
    let other = Room::new();
    let again = add(&other, &[text(&room.path("engines/demo")), "--yes"]);
    assert_eq!(again["sha256"], second["sha256"]);
    room.refused(
        &["engines", "add", text(&room.path("engines/demo")), "--yes", "--name", "x"],
        "the name is set by the manifest",
    );
}

#[test]
fn only_valid_engines_are_installed() {
    let room = Room::new();
    for (name, bytes, words) in [
        ("notes.txt", b"hello".as_slice(), "neither a library nor a program"),
        ("lib.so", b"hello", "neither a library nor a program"),
        ("empty", b"", "neither a library nor a program"),
        ("broken/broken.toml", b"name = ", "invalid manifest:"),
        ("legacy", SCRIPT.as_bytes(), "' is a built-in engine"),
    ] {
        let path = room.write(name, bytes);
        let path = if name.ends_with(".toml") { room.path("broken") } else { path };
        room.refused(&["engines", "add", text(&path), "--yes"], words);
    }
    let script = room.write("1st.sh", SCRIPT);
    room.refused(&["engines", "add", text(&script), "--yes"], "invalid engine name");
    room.misused(&["engines", "add", text(&script), "--yes", "--name", "../x"], "name");
    let trust = ["engines", "add", text(&script), "--name", "x", "--trust", "in-process", "--yes"];
    room.misused(&trust, "only a library");
    room.refused(&["engines", "add", text(&room.path("absent")), "--yes"], "missing");
    room.refused(&["engines", "remove", "legacy", "--yes"], "part of this build");
    room.misused(&["engines", "remove", "..", "--yes"], "invalid engine name");
    assert!(!room.path("engines").exists());
    let relative = Ran::of(
        room.command(&["engines", "add", text(&room.path("legacy")), "--name", "x", "--yes"])
            .env("CTX_HOME", "relative-home"),
    );
    assert_eq!(relative.code, Some(1));
    assert!(relative.stderr.contains("absolute"), "{}", relative.stderr);
}

#[cfg(unix)]
#[test]
fn the_trace_lists_each_place_and_why_it_was_skipped() {
    let room = Room::new();
    let script = room.write("demo.sh", SCRIPT);
    add(&room, &[text(&script), "--yes"]);
    let first = room.path("first");
    room.write("first/demo.toml", "manifest_version = 9\n");
    let list = format!("relative:{}", text(&first));
    let mut command = room.command(&["engines", "--trace", "--json"]);
    let ran = Ran::of(command.env("CTX_ENGINE_PATH", &list));
    let report: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let steps = report["trace"].as_array().expect("steps");
    let outcome = |end: &str| {
        let step = steps.iter().find(|s| s["path"].as_str().is_some_and(|p| p.ends_with(end)));
        let step = step.unwrap_or_else(|| panic!("{end}: {steps:?}"));
        (step["outcome"].as_str().expect("a word").to_owned(), step["reason"].to_string())
    };
    let (word, reason) = outcome("relative");
    assert!(word == "passedOver" && reason.contains("working directory"), "{word}: {reason}");
    let (word, reason) = outcome("first/demo.toml");
    assert!(word == "refused" && reason.contains("version 9"), "{word}: {reason}");
    let (word, reason) = outcome("engines/demo/demo.toml");
    assert!(word == "passedOver" && reason.contains("first/demo.toml"), "{word}: {reason}");
    // The broken one takes precedence, and every use of it reports that.
    let demo = report["engines"].as_array().expect("a list");
    let demo = demo.iter().find(|engine| engine["id"] == "demo").expect("it is listed");
    assert_eq!(demo["state"], "refused");
    let session = room.write("s.jsonl", join(&pi_lines(2)));
    let mut command = room.command(&["status", text(&session), "--engine", "demo"]);
    let ran = Ran::of(command.env("CTX_ENGINE_PATH", &list));
    assert!(ran.code == Some(1) && ran.stderr.contains("version 9"), "{}", ran.stderr);
    let mut command = room.command(&["engines", "--trace"]);
    let ran = Ran::of(command.env("CTX_ENGINE_PATH", &list));
    assert!(ran.stdout.contains("passed over") && ran.stdout.contains("refused"), "{}", ran.stdout);
}

#[cfg(unix)]
#[test]
fn status_shows_the_selected_engine_and_what_selected_it() {
    let room = Room::new();
    for name in ["one", "two", "three"] {
        let script = room.write(&format!("{name}.sh"), SCRIPT);
        add(&room, &[text(&script), "--yes"]);
    }
    let outside = room.write("s.jsonl", join(&pi_lines(2)));
    let inside = room.write("agents/ops/sessions/s1.jsonl", join(&pi_lines(2)));
    let selected = |args: &[&str]| {
        let args: Vec<&str> = ["status"].iter().chain(args).copied().collect();
        let report = room.json(&args);
        let word = |key: &str| report[key].as_str().expect("a word").to_owned();
        (word("engine"), word("engineSource"))
    };
    let is = |id: &str, source: &str| (id.to_owned(), source.to_owned());
    assert_eq!(selected(&[text(&outside)]), is("legacy", "default"));
    room.write(
        "ctx.json5",
        "{ plugins: { slots: { contextEngine: 'one' } },
           agents: { list: [{ id: 'ops', contextEngine: 'two' }] },
           models: { providers: { p: { models: [{ id: 'm', contextEngine: 'three' }] } } } }",
    );
    assert_eq!(selected(&[text(&outside)]), is("one", "global"));
    assert_eq!(selected(&[text(&inside)]), is("two", "agent"));
    assert_eq!(selected(&[text(&outside), "--agent", "ops"]), is("two", "agent"));
    assert_eq!(selected(&[text(&inside), "--model", "m"]), is("three", "model"));
    assert_eq!(
        selected(&[text(&inside), "--model", "m", "--engine", "legacy"]),
        is("legacy", "flag")
    );
    assert!(room.ctx(&["status", text(&outside)]).stdout.contains("one (by global)"));
}

#[test]
fn an_unknown_engine_is_reported_with_its_key_and_a_suggestion() {
    let room = Room::new();
    let session = room.write("s.jsonl", join(&pi_lines(2)));
    room.write("ctx.json5", "{ agents: { list: [{ id: 'ops', contextEngine: 'legcy' }] } }");
    let ran = room.ctx(&["replay", text(&session), "--agent", "ops"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    for said in ["agents.list[0].contextEngine", "did you mean 'legacy'?"] {
        assert!(ran.stderr.contains(said), "{said}: {}", ran.stderr);
    }
    room.misused(&["replay", text(&session), "--engine", "legcy"], "did you mean 'legacy'?");
}

#[cfg(unix)]
#[test]
fn the_trace_skips_engines_hidden_by_a_built_in_one() {
    let room = Room::new();
    let script = room.write("four.sh", "#!/bin/sh\nexit 0\n");
    let hash = ctx_engine_registry::find::sha256_of(b"#!/bin/sh\nexit 0\n");
    let manifest = format!(
        "manifest_version = 1\nname = \"legacy\"\nversion = \"0.1.0\"\ncontract = [\"1.0\"]\n\
         [platform.any]\ncommand = \"legacy\"\ninterpreter = \"sh\"\nsha256 = \"{hash}\"\n"
    );
    let folder = room.path("engines/legacy");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::copy(script, folder.join("legacy")).expect("a copy");
    std::fs::write(folder.join("legacy.toml"), manifest).expect("a manifest");
    let report = room.json(&["engines", "--trace"]);
    let steps = report["trace"].as_array().expect("steps");
    let path = folder.join("legacy.toml");
    let step = steps.iter().find(|step| step["path"] == text(&path)).expect("it is there");
    assert_eq!(step["outcome"], "passedOver", "{step}");
    assert_eq!(step["reason"], "the built-in engine 'legacy' takes precedence");
}

#[test]
fn secrets_in_an_engines_settings_are_not_shown() {
    let room = Room::new();
    room.write(
        "ctx.json5",
        "{ plugins: { engines: { demo: { config: { apiKey: 'sk-9c41d0e7', keepLast: 4, \
         nested: [{ auth_token: 'sk-9c41d0e7', password: 'env:PASSWORD' }] } } } } }",
    );
    let ran = room.ctx(&["config", "show"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stdout.contains("9c41d0e7"), "{}", ran.stdout);
    let shown: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(
        shown["plugins"]["engines"]["demo"]["config"],
        json!({
            "apiKey": "(hidden)", "keepLast": 4,
            "nested": [{ "auth_token": "(hidden)", "password": "env:PASSWORD" }],
        })
    );
}

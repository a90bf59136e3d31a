//! Compares docs/engines.md with the conformance suite, and tests the engines in it.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use ctx_config::Config;
use ctx_core::NoTools;
use ctx_engine_registry::find::Package;
use ctx_engine_registry::{EngineConfig, SelectFor, Trust, selected_engine};
use ctx_runtime::{NoListener, Runtime};
use ctx_session::Home;
use ctx_session::key::SessionKey;
use ctx_testkit::chat::{ScriptedChat, shared};
use ctx_testkit::conformance::{Level, Options, Plugin, cases, check};
use serde_json::Value;
use tempfile::TempDir;

use crate::memory;
use crate::plugins::{has, root};
use crate::stranger::build;

const DOCS: &str = include_str!("../../docs/engines.md");

/// Returns the code blocks of a language, in order.
fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    DOCS.split(&*fence).skip(1).filter_map(|rest| rest.split("\n```").next()).collect()
}

#[test]
fn the_docs_list_every_case() {
    let rows: Vec<String> = cases(Level::Full)
        .map(|case| format!("| {} | {} | {} |", case.name, case.level.name(), case.about))
        .collect();
    let listed: Vec<_> = DOCS
        .lines()
        .filter(|line| line.contains("| core |") || line.contains("| full |"))
        .collect();
    assert_eq!(listed, rows);
}

#[test]
fn the_configurations_in_the_docs_select_their_engines() {
    let config = Config::parse(blocks("json5")[0]).expect("a configuration");
    let tiny = SelectFor { agent: Some("ops"), model: Some("tiny"), ..SelectFor::default() };
    for (wanted, engine) in [
        (SelectFor::default(), "lossless"),
        (SelectFor { agent: Some("ops"), ..SelectFor::default() }, "sliding-window"),
        (tiny, "legacy"),
        (SelectFor { engine: Some("newest"), ..tiny }, "newest"),
    ] {
        assert_eq!(selected_engine(&config, wanted).expect("a selection").id, engine);
    }
}

/// Returns the keys of an object and of nested objects, with their values.
fn flat(object: &Value, prefix: &str) -> Vec<(String, Value)> {
    let fields = object.as_object().expect("an object").iter();
    let parts = fields.map(|(key, value)| match value {
        Value::Object(_) => flat(value, &format!("{prefix}{key}.")),
        _ => vec![(format!("{prefix}{key}"), value.clone())],
    });
    parts.flatten().collect()
}

#[test]
fn the_docs_list_every_key_of_an_engine_with_its_default() {
    let (_, table) = DOCS.split_once("| key | default | meaning |\n").expect("a table");
    let rows: Vec<&str> = table.lines().skip(1).take_while(|line| line.starts_with('|')).collect();
    let defaults = serde_json::to_value(EngineConfig::default()).expect("JSON");
    let keys = flat(&defaults, "");
    assert_eq!(rows.len(), keys.len());
    for ((key, default), row) in keys.into_iter().zip(rows) {
        let shown = if default.is_null() { String::new() } else { format!("`{default}` |") };
        assert!(row.starts_with(&format!("| `{key}` | {shown}")), "{key} {default}: {row}");
    }
}

#[test]
fn python_echo_gives_the_answers_in_the_docs() {
    if !has("python3") {
        return;
    }
    let lines: Vec<&str> = blocks("text")[0].lines().collect();
    let side = |mark: &str| lines.iter().filter_map(|line| line.strip_prefix(mark)).collect();
    let (calls, answers): (Vec<&str>, Vec<&str>) = (side("> "), side("< "));
    assert_eq!((calls.len(), answers.len()), (3, 3));
    let mut engine = Command::new("python3")
        .arg(root().join("plugins/python-echo/engine.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 runs");
    let mut input = engine.stdin.take().expect("a pipe");
    input.write_all(format!("{}\n", calls.join("\n")).as_bytes()).expect("the engine reads");
    drop(input);
    let output = engine.wait_with_output().expect("the engine ends").stdout;
    let lines: Vec<String> = String::from_utf8_lossy(&output).lines().map(str::to_owned).collect();
    assert_eq!(lines, answers);
}

#[test]
fn the_first_engine_of_the_docs_builds_and_passes() {
    let sdk = root().join("crates/ctx-engine-sdk");
    let manifest =
        blocks("toml")[0].replace("../ctx/crates/ctx-engine-sdk", &sdk.display().to_string());
    let [library, program] = blocks("rust")[..2] else { unreachable!("the slice has two items") };
    let files = [("Cargo.toml", &*manifest), ("src/lib.rs", library), ("src/main.rs", program)];
    let built = build("newest", &files.map(|(path, text)| (path.into(), text.to_owned())));
    let plugin = Plugin::read(&built.program, None).expect("an engine");
    passes(plugin);
    serves_a_host(&built.library, "newest");
}

fn passes(plugin: Plugin) {
    let _guard = memory::measured();
    let report = check(move |start| plugin.start(start), &Options::new(Level::Full));
    assert!(report.is_passed(), "{report}");
}

/// Runs a turn with the library in a host whose configuration only selects it.
fn serves_a_host(library: &Path, name: &str) {
    let dir = TempDir::new().expect("a folder");
    let home = Home::at(dir.path());
    let package = Package::read(library, None).expect("an engine");
    let folder = dir.path().join("engines").join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    package.write_into(&folder).expect("it is installed");
    let config = format!("{{ plugins: {{ slots: {{ contextEngine: '{name}' }} }} }}");
    let config = Config::parse(&config).expect("a configuration");
    let (model, shared) = shared(ScriptedChat::new("script/a", 32_000));
    let runtime = Runtime::builder(home, config).model(shared).build().expect("a runtime");
    let key: SessionKey = "agent:main:main".parse().expect("a key");
    let turns = async {
        let turn = runtime.turn(&key, "hello", &NoTools, &mut NoListener).await.expect("an answer");
        let engine = turn.manifest.and_then(|manifest| manifest.engine).expect("an engine");
        assert_eq!((&*engine.id, engine.reason), (name, None), "{:?}", turn.notices);
        assert_eq!(turn.notices, []);
        runtime.close(&key).await.expect("it is closed");
    };
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(turns);
    assert_eq!(model.asked(), 1);
}

#[test]
fn the_compacting_engine_of_the_docs_builds_and_passes() {
    let sdk = root().join("crates/ctx-engine-sdk");
    let manifest = blocks("toml")[0]
        .replace("../ctx/crates/ctx-engine-sdk", &sdk.display().to_string())
        .replace("newest", "keeper");
    let files = [("Cargo.toml", &*manifest), ("src/lib.rs", blocks("rust")[2])];
    let built = build("keeper", &files.map(|(path, text)| (path.into(), text.to_owned())));
    let plugin = Plugin::read(&built.library, None).expect("an engine");
    passes(plugin.with_trust(Trust::InProcess));
    serves_a_host(&built.library, "keeper");
}

#[test]
fn the_manifest_in_the_docs_equals_the_one_of_python_echo() {
    if !has("python3") {
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let engine = root().join("plugins/python-echo/engine.py");
    std::fs::copy(engine, folder.path().join("engine.py")).expect("it is copied");
    let manifest = folder.path().join("python-echo.toml");
    std::fs::write(manifest, blocks("toml")[2]).expect("it is written");
    let plugin = Plugin::read(folder.path(), None).expect("an engine");
    assert_eq!(plugin.id(), "python-echo");
    let _guard = memory::measured();
    let report = check(move |start| plugin.start(start), &Options::new(Level::Core));
    assert!(report.is_passed(), "{report}");
}

//! docs/engines.md against the suite, and the engine that it shows against itself.

use std::fs;
use std::process::Command;

use ctx_testkit::conformance::{Level, Options, Plugin, cases, check};

const DOCS: &str = include_str!("../../docs/engines.md");
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// The blocks of a language, in their order.
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
fn the_engine_of_the_docs_is_built_as_it_stands_there_and_passes() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let sdk = format!("{ROOT}/crates/ctx-engine-sdk");
    let manifest = blocks("toml")[0].replace("../ctx/crates/ctx-engine-sdk", &sdk);
    let [library, program] = blocks("rust")[..2] else { unreachable!("it has two files") };
    fs::create_dir(folder.path().join("src")).expect("a folder");
    for (name, text) in
        [("Cargo.toml", &*manifest), ("src/lib.rs", library), ("src/main.rs", program)]
    {
        fs::write(folder.path().join(name), text).expect("it is written");
    }
    // What it depends on was fetched for this workspace, in the versions of its lock file.
    fs::copy(format!("{ROOT}/Cargo.lock"), folder.path().join("Cargo.lock")).expect("a lock file");
    let target = folder.path().join("target");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--quiet", "--offline"])
        .current_dir(folder.path())
        .env("CARGO_TARGET_DIR", &target)
        .status()
        .expect("cargo runs");
    assert!(built.success(), "the engine of the docs is not built");
    let program = target.join(format!("debug/newest{}", std::env::consts::EXE_SUFFIX));
    let plugin = Plugin::read(&program, None).expect("an engine");
    let report = check(move |start| plugin.start(start), &Options::new(Level::Full));
    assert!(report.is_passed(), "{report}");
}

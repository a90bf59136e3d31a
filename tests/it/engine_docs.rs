//! docs/engines.md against the suite, and the engine that it shows against itself.

use ctx_testkit::conformance::{Level, Options, Plugin, cases, check};

use crate::memory;
use crate::plugins::root;
use crate::stranger::build;

const DOCS: &str = include_str!("../../docs/engines.md");

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
    let sdk = root().join("crates/ctx-engine-sdk");
    let manifest =
        blocks("toml")[0].replace("../ctx/crates/ctx-engine-sdk", &sdk.display().to_string());
    let [library, program] = blocks("rust")[..2] else { unreachable!("it has two files") };
    let files = [("Cargo.toml", &*manifest), ("src/lib.rs", library), ("src/main.rs", program)];
    let built = build("newest", &files.map(|(path, text)| (path.into(), text.to_owned())));
    let plugin = Plugin::read(&built.program, None).expect("an engine");
    let _guard = memory::measured();
    let report = check(move |start| plugin.start(start), &Options::new(Level::Full));
    assert!(report.is_passed(), "{report}");
}

//! An engine of the SDK, as a library and as a program.

use std::path::PathBuf;

use super::*;

/// Returns the library and the program of the plugin that misbehaves on request.
fn chaos() -> (PathBuf, PathBuf) {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", "chaos", "--message-format", "json"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let files = built.stdout.split(|&byte| byte == b'\n').filter_map(|line| {
        let artifact: Value = serde_json::from_slice(line).ok()?;
        let is_of_chaos = artifact["target"]["name"].as_str()? == "chaos";
        is_of_chaos.then(|| artifact["filenames"].as_array().cloned()).flatten()
    });
    let files: Vec<PathBuf> =
        files.flatten().filter_map(|file| Some(file.as_str()?.into())).collect();
    let with = |ending: &str| {
        let is = |file: &&PathBuf| file.extension().unwrap_or_default() == ending;
        files.iter().find(is).unwrap_or_else(|| panic!("no *{ending} in {files:?}")).clone()
    };
    let ending = std::env::consts::DLL_EXTENSION;
    (with(ending), with(std::env::consts::EXE_EXTENSION))
}

fn hello(fault: &str) -> Value {
    let config = json!({"fault": fault, "at": "assemble"});
    json!({"protocol": "1.0", "features": [], "config": config})
}

#[test]
fn an_sdk_engine_continues_after_a_panic_in_both_transports() {
    let (library, program) = chaos();
    for engine in [Engine::library(library), Engine::program(Program::new(program))] {
        let info = block_on(engine.ask("hello", hello("panic"), LONG)).unwrap();
        assert_eq!(info["id"], "chaos");
        let session = json!({"sessionId": "s"});
        let fault = block_on(engine.ask("assemble", session.clone(), LONG)).unwrap_err();
        assert_eq!(fault.name(), "panicked");
        // Called again without a fault, it works.
        block_on(engine.ask("hello", json!({"protocol": "1.0"}), LONG)).unwrap();
        assert!(block_on(engine.ask("assemble", session, LONG)).is_ok());
    }
}

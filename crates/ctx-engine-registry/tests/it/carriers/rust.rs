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

/// The engine in each transport and each encoding, not yet called.
fn engines() -> impl Iterator<Item = (Engine, Encoding)> {
    let (library, program) = chaos();
    [Encoding::Json, Encoding::MessagePack].into_iter().flat_map(move |encoding| {
        let engines =
            [Engine::library(library.clone()), Engine::program(Program::new(program.clone()))];
        engines.map(|engine| (engine, encoding))
    })
}

impl Engine {
    /// Calls `hello`, which orders a fault, and then uses the chosen encoding.
    fn hello(&mut self, encoding: Encoding, config: Value) {
        self.encoding = Encoding::Json;
        let hello = json!({"protocol": "1.0", "encodings": [encoding.name()], "config": config});
        let info = block_on(self.ask("hello", hello, LONG)).unwrap();
        assert_eq!(info["id"], "chaos");
        let is_packed = encoding == Encoding::MessagePack;
        assert_eq!(info.get("encoding"), is_packed.then(|| json!("msgpack")).as_ref());
        self.encoding = encoding;
    }

    fn assemble(&self) -> Result<Value, Fault> {
        let row = json!({"id": "e", "message": {"role": "user", "blocks": []}});
        let update = json!({"reset": true, "added": [row], "rows": 1});
        block_on(self.ask("assemble", json!({"sessionId": "s", "update": update}), LONG))
    }
}

#[test]
fn an_sdk_engine_continues_after_a_fault_in_every_transport_and_encoding() {
    for (mut engine, encoding) in engines() {
        for (order, fault) in
            [("panic", "panicked"), ("wrong-id", "garbage"), ("garbage", "garbage")]
        {
            engine.hello(encoding, json!({"fault": order}));
            assert_eq!(engine.assemble().unwrap_err().name(), fault, "{order} in {encoding}");
            // Called again without a fault, it works.
            engine.hello(encoding, json!({"whole": true}));
            let whole = engine.assemble().unwrap();
            assert_eq!(whole["messages"][0]["id"], "e", "{order} in {encoding}");
        }
    }
}

#[test]
fn an_answer_over_the_limit_is_refused_in_every_transport_and_encoding() {
    for (mut engine, encoding) in engines() {
        engine.hello(encoding, json!({"fault": "huge-answer", "bytes": 33 << 20}));
        assert_eq!(engine.assemble().unwrap_err().name(), "too-large", "{encoding}");
    }
}

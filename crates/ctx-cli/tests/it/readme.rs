//! README.md and docs/ show the actual output of the program.

use std::path::{Path, PathBuf};

use crate::support::Room;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the text of a page, named from the root of the repository.
fn page(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).expect("the page is there")
}

#[test]
fn the_replay_in_the_readme_matches_the_output() {
    let page = page("README.md");
    let shown = page.split("```text\n").nth(1).and_then(|rest| rest.split("```").next());
    let sample = root().join("examples/fix-flaky-test.jsonl");
    let sample = sample.to_str().expect("the path is text");
    let ran = Room::new().ctx(&["replay", sample, "--window", "32000"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    // The first line is the path, which differs in the README.
    let lines = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(lines(&ran.stdout), lines(shown.expect("the README shows a replay")));
}

#[test]
fn the_recall_in_the_docs_matches_the_output() {
    let page = page("docs/memory.md");
    let shown = page.split("<!-- output: recall -->\n```text\n").nth(1);
    let shown = shown.and_then(|rest| rest.split("```").next()).expect("the page shows a recall");
    let sample = root().join("examples/fix-flaky-test.jsonl");
    let sample = sample.to_str().expect("the path is text");
    let room = Room::new();
    assert_eq!(room.ctx(&["memory", "ingest", sample]).code, Some(0));
    let query = "can the u32 generation overflow?";
    for budget in ["120", "500", "1000", "2000", "4000"] {
        let ran = room.ctx(&["recall", query, "--session", sample, "--budget", budget]);
        assert!(ran.stdout.contains("4 billion leases of *one* job."), "{budget}: {}", ran.stdout);
        if budget == "120" {
            assert_eq!(ran.stdout, shown);
        }
    }
}

#[test]
fn the_host_in_the_docs_is_the_example() {
    let example = root().join("crates/ctx-runtime/examples/host.rs");
    let example = std::fs::read_to_string(example).expect("the example is there");
    // It starts with its purpose and its lint attributes.
    let code = example.splitn(3, "\n\n").nth(2).expect("its code");
    let page = page("docs/library.md");
    assert!(page.contains(&format!("```rust\n{}\n```", code.trim_end())), "{code}");
}

#[cfg(unix)]
#[test]
fn the_conversation_in_the_docs_matches_the_output() {
    use std::io::Write;
    use std::process::{Command, Stdio};

    let page = page("docs/runtime.md");
    let shown = page
        .split("```text\n")
        .find(|block| block.lines().nth(1) == Some("> my cat is called Ada"));
    let shown = shown.and_then(|rest| rest.split("```").next()).expect("a conversation");
    let (typed, shown): (Vec<_>, Vec<_>) = shown.lines().partition(|line| line.starts_with("> "));
    let typed: String = typed.iter().map(|line| format!("{}\n", &line[2..])).collect();
    let room = Room::new();
    let mut child = Command::new("sh")
        .args(["-c", "exec \"$0\" chat --demo --window 4000 --verbose 2>&1"])
        .arg(env!("CARGO_BIN_EXE_ctx"))
        .current_dir(room.path(""))
        .env("CTX_HOME", room.path("home"))
        .env("NO_COLOR", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    child.stdin.take().expect("a pipe").write_all(typed.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8(output.stdout).expect("text");
    let mut said_lines = said.lines();
    let mut is_left_out = false;
    for line in shown {
        if line == "[...]" {
            is_left_out = true;
            continue;
        }
        let next = match std::mem::take(&mut is_left_out) {
            true => said_lines.find(|said| *said == line),
            false => said_lines.next(),
        };
        assert_eq!(next, Some(line), "{said}");
    }
    assert_eq!(said_lines.next(), None, "{said}");
}

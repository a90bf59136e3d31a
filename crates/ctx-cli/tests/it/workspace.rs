//! `ctx index`, `ctx context`, and files of the workspace in a request.

use std::fs;

use serde_json::json;

use crate::support::{Ran, Room, join, pi_lines, text};

/// Creates a room with a workspace of three files.
fn room() -> Room {
    let room = Room::new();
    room.write("w/src/deploy.rs", "// how to ship\nfn deploy_to_staging() {}\n");
    room.write("w/MEMORY.md", "# Notes\n\nStaging listens on port 8443.\n");
    room.write("w/.gitignore", "*.log\n");
    room.write("w/noise.log", "staging staging staging\n");
    room
}

#[test]
fn a_second_indexing_reads_only_changed_files() {
    let room = room();
    let folder = room.path("w");
    let first = room.json(&["index", text(&folder)]);
    assert_eq!(
        (&first["files"], &first["added"], &first["left"]),
        (&json!(2), &json!(2), &json!(0))
    );
    assert_eq!(first["skipped"]["hidden"], 1);
    let index = first["index"].as_str().expect("a path");
    assert!(index.contains("agents/main/workspaces/"), "{index}");
    room.write("w/src/deploy.rs", "fn deploy_to_production() {}\n");
    let second = room.json(&["index", text(&folder)]);
    assert_eq!((&second["changed"], &second["unchanged"]), (&json!(1), &json!(1)));
    let said = room.ctx(&["index", text(&folder)]).stdout;
    assert!(said.contains("2 files, 2 chunks\n0 new, 0 changed, 0 removed, 2 unchanged"), "{said}");
    let removed = room.json(&["index", text(&folder), "--remove"]);
    assert_eq!(removed["removed"], true);
    let left = fs::read_dir(index).expect("a folder").map(|entry| entry.expect("an entry").path());
    assert!(left.into_iter().all(|path| path.ends_with("files.jsonl.lock")));
    assert_eq!(room.json(&["index", text(&folder), "--remove"])["removed"], false);
}

#[test]
fn a_question_gets_the_same_block_as_a_request() {
    let room = room();
    let folder = room.path("w");
    let ran = room.ctx(&["context", "/context how does staging work?", "-w", text(&folder)]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.starts_with("<relevant_context>\n<file path=\""), "{}", ran.stdout);
    assert!(ran.stdout.contains("<file path=\"MEMORY.md\" lines=\"1-3\">"), "{}", ran.stdout);
    assert!(ran.stdout.contains("fn deploy_to_staging() {}"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("noise"), "{}", ran.stdout);
    let told = room.json(&["context", "what is in `src/deploy.rs`?", "--workspace", text(&folder)]);
    assert_eq!(told["trigger"], json!({ "kind": "file", "text": "src/deploy.rs" }));
    assert_eq!(told["snippets"][0]["path"], "src/deploy.rs");
    assert_eq!(told["snippets"][0]["inBlock"], true);
    let small =
        room.json(&["context", "staging", "-w", text(&folder), "--budget", "50", "--limit", "1"]);
    assert!(small["tokens"].as_u64().is_some_and(|tokens| (1..=50).contains(&tokens)), "{small}");
    assert_eq!(small["trigger"], json!(null));
    let none = room.json(&["context", "xylophone", "-w", text(&folder)]);
    assert_eq!((&none["block"], &none["tokens"]), (&json!(null), &json!(0)));
}

#[test]
fn the_default_workspace_is_the_current_folder() {
    let room = room();
    for args in [&["index", "--json"][..], &["context", "staging", "--json"]] {
        let ran = Ran::of(room.command(args).current_dir(room.path("w")));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(
            ran.stdout.contains("deploy.rs") || ran.stdout.contains("\"files\": 2"),
            "{}",
            ran.stdout
        );
    }
}

#[test]
fn invalid_arguments_are_refused() {
    let room = room();
    let folder = room.path("w");
    room.refused(&["index", text(&room.path("none"))], "the workspace cannot be searched");
    room.refused(&["index", text(&room.path("w/MEMORY.md"))], "not a folder");
    room.misused(&["context", "/context", "-w", text(&folder)], "the question is too short");
    room.misused(
        &["context", "staging", "-w", text(&folder), "--budget", "x"],
        "invalid number of tokens",
    );
    room.misused(&["index", text(&folder), "--agent", "../x"], "");
    room.write("ctx.json5", "{ agents: { defaults: { workspace: 'w' } } }");
    room.refused(&["config", "check"], "'agents.defaults.workspace' is not an absolute path");
    room.write("ctx.json5", "{ agents: { defaults: { workspaceContext: { limits: 3 } } } }");
    room.refused(&["config", "check"], "limit");
    room.write("ctx.json5", "{ agents: { defaults: { workspaceContext: { chunkTokens: 3 } } } }");
    room.refused(&["config", "check"], "chunkTokens");
}

#[test]
fn a_request_contains_the_file_that_its_message_names() {
    let room = room();
    let config = json!({ "agents": { "defaults": { "workspace": room.path("w") } } });
    room.write("ctx.json5", config.to_string());
    let mut lines = pi_lines(1);
    let ask = |id: &str, parent: &str, text: &str| {
        json!({
            "type": "message", "id": id, "parentId": parent,
            "timestamp": "2026-01-05T09:00:00.000Z",
            "message": { "role": "user", "content": [{ "type": "text", "text": text }] },
        })
        .to_string()
    };
    lines.push(ask("aaaaaaaa", "00000003", "/context on which port does staging listen?"));
    let session = room.write("s.jsonl", join(&lines));
    let plain = room.json(&["assemble", text(&session), "--window", "64k"]);
    let block = plain["messages"].to_string();
    assert!(block.contains("<relevant_context>") && block.contains("port 8443"), "{block}");
    let inserted = plain["manifest"].to_string();
    assert!(inserted.contains("of the workspace that fit the newest message"), "{inserted}");
    let args = ["assemble", text(&session), "--window", "64k", "--profile", "ponybunny"];
    let pony = room.json(&args);
    let addition = pony["systemPromptAddition"].as_str().expect("an addition");
    assert!(addition.contains("port 8443"), "{addition}");
    assert!(!pony["messages"].to_string().contains("relevant_context"));
    // A missing folder causes a warning.
    fs::remove_dir_all(room.path("w")).expect("it was there");
    let ran = room.ctx(&["assemble", text(&session), "--window", "64k", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("the workspace is not searched:"), "{}", ran.stderr);
    assert!(!ran.stdout.contains("relevant_context"));
}

//! Named pipes without a writer in place of files: no command waits for them.

use std::process::{Command, Stdio};

use crate::support::{Ran, Room, join, pi_lines, text};

fn pipe(room: &Room, name: &str) -> String {
    let path = room.path(name);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("it is made");
    assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo is there").success());
    text(&path).to_owned()
}

#[test]
fn a_pipe_as_a_session_or_a_data_set_is_refused() {
    let room = Room::new();
    let pipe = pipe(&room, "pipe.jsonl");
    let out = text(&room.path("out.jsonl")).to_owned();
    for args in [
        &["status", &pipe][..],
        &["check", &pipe],
        &["assemble", &pipe, "--window", "32k"],
        &["replay", &pipe],
        &["compact", &pipe, "--dry-run"],
        &["compactions", &pipe],
        &["diff", &pipe],
        &["convert", &pipe, "--to", "openai", "--output", &out],
        &["memory", "ingest", &pipe],
        &["eval", "recall", "--dataset", "locomo", &pipe],
        &["status", &pipe, "--config", &pipe],
    ] {
        room.refused(args, "named pipe");
    }
    assert!(!room.path("out.jsonl").exists());
}

#[test]
fn pipes_in_the_home_and_in_session_folders_block_no_command() {
    let room = Room::new();
    let session = room.write("work/s.jsonl", join(&pi_lines(4)));
    for name in [
        "overlays/abc.jsonl",
        "agents/main/sessions/s2.jsonl",
        "agents/main/memory/context/notes.jsonl",
        "proxy/x.jsonl",
        "engines/health.json",
        ".claude/projects/p/0ec39323-1f0a-4a5b-9c3d-7f6f1a2b3c4d.jsonl",
        ".codex/sessions/2026/01/05/rollout-2026-01-05T08-00-00-0ec39323-1f0a-4a5b-9c3d-7f6f1a2b3c4d.jsonl",
        "work/src/main.rs",
    ] {
        pipe(&room, name);
    }
    let (session, work) = (text(&session).to_owned(), text(&room.path("work")).to_owned());
    for args in [
        &["sessions"][..],
        &["status", &session],
        &["memory", "ingest", &session],
        &["memory", "forget", "--matching", "question 1", "--yes"],
        &["index", &work],
        &["context", "what is in main?", "--workspace", &work],
        &["engines"],
    ] {
        let ran = room.ctx(args);
        assert!(ran.code.is_some_and(|code| code < 2), "{args:?}: {}", ran.stderr);
    }
    pipe(&room, "agents/main/sessions/sessions.json");
    pipe(&room, "ctx.json5");
    for args in [&["sessions"][..], &["status", &session]] {
        assert!(room.ctx(args).code.is_some(), "{args:?}");
    }
}

#[test]
fn a_pipe_from_the_shell_is_read() {
    let room = Room::new();
    let session = room.write("s.jsonl", join(&pi_lines(4)));
    let mut cat = Command::new("cat").arg(&session).stdout(Stdio::piped()).spawn().expect("cat");
    let handed = cat.stdout.take().expect("its output");
    let ran = Ran::of(room.command(&["status", "/dev/stdin"]).stdin(handed));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(cat.wait().expect("cat ends").success());
}

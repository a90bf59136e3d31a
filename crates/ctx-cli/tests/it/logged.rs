//! The log of a run, on stderr or in a file.

use std::process::Stdio;

use crate::support::{Ran, Room, text};

/// Runs a conversation with the built-in model that is long enough to be compacted.
fn chat(room: &Room, args: &[&str], filter: Option<&str>) -> Ran {
    let lines: String = (0..8).map(|n| format!("a long text about tea number {n}\n")).collect();
    let input = room.write("input.txt", lines);
    let args = [&["chat", "--demo", "--window", "4000"], args].concat();
    let mut command = room.command(&args);
    command.env_remove("RUST_LOG").stdin(Stdio::from(std::fs::File::open(input).expect("input")));
    Ran::of(filter.iter().fold(&mut command, |command, filter| command.env("RUST_LOG", filter)))
}

#[test]
fn a_compaction_is_logged_on_request() {
    let room = Room::new();
    let ran = chat(&room, &[], None);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stderr.contains("compaction triggered"), "{}", ran.stderr);
    let ran = chat(&Room::new(), &[], Some("info"));
    for words in
        ["compaction triggered", "chunk_ratio=", "parts=", "compaction completed", "api_calls="]
    {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
    assert!(!ran.stdout.contains("compaction triggered"));
}

#[test]
fn a_log_file_is_appended_to_and_readable_only_by_its_owner() {
    let room = Room::new();
    let log = room.path("ctx.log");
    for runs in 1..3 {
        let ran = chat(&room, &["--log-file", text(&log), "-s", &format!("s{runs}")], None);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(!ran.stderr.contains("compaction triggered"), "{}", ran.stderr);
        let logged = std::fs::read_to_string(&log).expect("a log");
        assert!(logged.matches("compaction completed").count() >= runs, "{logged}");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = log.metadata().expect("a log").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    room.refused(&["sessions", "--log-file", "no/such/folder/x"], "cannot write the log file");
    let ran = chat(&Room::new(), &[], Some("=,=nonsense=="));
    assert!(ran.stderr.contains("RUST_LOG ignored"), "{}", ran.stderr);
    assert_eq!(ran.code, Some(0));
}

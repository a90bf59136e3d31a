//! Who else writes, where nothing can be written, and who is stopped in the middle.

use std::fs::{self, File};

use ctx_session::log::{LogOptions, SessionLog};
use ctx_session::overlay::Overlay;
use ctx_session::paths::Home;

use crate::formats;
use crate::support::{Room, join, pi_lines, text};

const TURNS: usize = 60;

/// Refused with a hint; nothing is written but what locks need.
fn refused_untouched(room: &Room, args: &[&str], words: &str) {
    let before = room.files();
    let ran = room.ctx(args);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{args:?}: {}", ran.stderr);
    for said in ["error: ", words, "hint: "] {
        assert!(ran.stderr.contains(said), "{args:?}: {said} not in {}", ran.stderr);
    }
    assert_eq!(room.files(), before, "{args:?}");
}

#[test]
fn a_session_that_another_process_writes_to_is_left_alone() {
    let room = Room::new();
    let path = formats::ours(&room, TURNS);
    let compact = ["compact", text(&path), "--window", "32000"];
    let undo = ["compact", text(&path), "--undo"];
    let writer = SessionLog::open(&path, LogOptions::default()).expect("it is free");
    refused_untouched(&room, &compact, "another writer has the file open");
    assert_eq!(room.json(&undo)["undone"], false, "nothing is to be written");
    drop(writer);
    assert_eq!(room.json(&compact)["compacted"], true);
    let writer = SessionLog::open(&path, LogOptions::default()).expect("it is free");
    refused_untouched(&room, &undo, "another writer has the file open");
    drop(writer);
    assert_eq!(room.json(&undo)["undone"], true);
}

#[test]
fn an_overlay_that_another_process_writes_to_is_left_alone() {
    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(TURNS)));
    let compact = ["compact", text(&path), "--window", "32000"];
    let undo = ["compact", text(&path), "--undo"];
    assert_eq!(room.json(&compact)["compacted"], true);
    let overlay = Overlay::of(&Home::at(room.path("")), &path).expect("it is there");
    let mut lock = overlay.path().as_os_str().to_owned();
    lock.push(".lock");
    let lock = File::options().write(true).create(true).truncate(false).open(lock).expect("a lock");
    lock.lock().expect("it is free");
    refused_untouched(&room, &undo, "another writer has the file open");
    refused_untouched(&room, &[&compact[..], &["--force", "--target", "3k"]].concat(), "writer");
    // Who only looks is not kept waiting.
    assert_eq!(room.json(&["compactions", text(&path)]).as_array().map(Vec::len), Some(1));
    drop(lock);
    assert_eq!(room.json(&undo)["undone"], true);
}

#[test]
fn where_nothing_can_be_stored_the_reason_is_said() {
    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(TURNS)));
    room.write("overlays", "in the way");
    refused_untouched(&room, &["compact", text(&path), "--window", "32000"], "overlays");
    assert_eq!(room.json(&["compact", text(&path), "--window", "32000", "--dry-run"])["ok"], true);
}

#[cfg(unix)]
#[test]
fn a_home_that_may_not_be_written_is_said() {
    use std::os::unix::fs::PermissionsExt;

    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(TURNS)));
    let overlays = room.path("overlays");
    fs::create_dir(&overlays).expect("a folder");
    fs::set_permissions(&overlays, fs::Permissions::from_mode(0o500)).expect("it is ours");
    // Nothing keeps root from writing.
    if File::create(overlays.join("probe")).is_err() {
        refused_untouched(&room, &["compact", text(&path), "--window", "32000"], "overlays");
    }
    fs::set_permissions(&overlays, fs::Permissions::from_mode(0o700)).expect("it is ours");
}

#[cfg(unix)]
#[test]
fn an_interrupt_during_a_models_answer_leaves_everything_as_it_was() {
    use std::process::{Command, Stdio};

    use ctx_testkit::provider::{FakeProvider, Moment, Step};

    let room = Room::new();
    for path in [room.write("s.jsonl", join(&pi_lines(TURNS))), formats::ours(&room, TURNS)] {
        let slow = Step::text("half of it").held_at(Moment::AfterEvents(1));
        let provider = FakeProvider::builder().script([slow.always()]).start().expect("it starts");
        let config = serde_json::json!({"models": {"providers": {"fake": {
            "baseUrl": provider.v1(), "models": [{"id": "m", "contextWindow": 64_000}]}}}});
        room.write("ctx.json5", config.to_string());
        let before = room.files();
        let args = ["compact", text(&path), "--window", "32000", "--summary-model", "fake/m"];
        let mut child = room
            .command(&args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        assert!(provider.wait_arrived(1), "the model is asked");
        let pid = child.id().to_string();
        let sent = Command::new("kill").args([interrupt(), &pid]).status();
        let sent = sent.expect("a signal is sent");
        assert!(sent.success());
        let ended = child.wait().expect("it ends");
        assert!(!ended.success(), "{ended}");
        assert_eq!(room.files(), before);
        provider.release_all();
        let args = ["compact", text(&path), "--window", "32000", "--summary-model", "none"];
        assert_eq!(room.json(&args)["compacted"], true, "no lock is left behind");
    }
}

/// What ends a program started by this one as Ctrl-C would. A shell has its background jobs ignore
/// Ctrl-C, and what they start inherits that.
#[cfg(unix)]
fn interrupt() -> &'static str {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    match ignored {
        Some(mask) if mask & 0b10 != 0 => "-TERM",
        _ => "-INT",
    }
}

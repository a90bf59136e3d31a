//! Other writers, unwritable folders, and interrupted commands.

#[cfg(unix)]
use std::fs;
use std::fs::File;

use ctx_session::{Home, LogOptions, Overlay, SessionLog};

use crate::formats;
#[cfg(target_os = "linux")]
use crate::support::Ran;
use crate::support::{Room, join, pi_lines, text};

const TURNS: usize = 60;

/// Checks that a command is rejected with a hint, and that only locks are written.
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
fn a_session_in_use_by_another_process_is_not_changed() {
    let room = Room::new();
    let path = formats::ours(&room, TURNS);
    let compact = ["compact", text(&path), "--window", "32000"];
    let undo = ["compact", text(&path), "--undo"];
    let writer = SessionLog::open(&path, LogOptions::default()).expect("it is free");
    refused_untouched(&room, &compact, "another writer has the file open");
    assert_eq!(room.json(&undo)["undone"], false, "nothing needs to be written");
    drop(writer);
    assert_eq!(room.json(&compact)["compacted"], true);
    let writer = SessionLog::open(&path, LogOptions::default()).expect("it is free");
    refused_untouched(&room, &undo, "another writer has the file open");
    drop(writer);
    assert_eq!(room.json(&undo)["undone"], true);
}

#[test]
fn an_overlay_in_use_by_another_process_is_not_changed() {
    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(TURNS)));
    let compact = ["compact", text(&path), "--window", "32000"];
    let undo = ["compact", text(&path), "--undo"];
    assert_eq!(room.json(&compact)["compacted"], true);
    let overlay = Overlay::of(&Home::at(room.path("")), &path).expect("it is there");
    let mut lock = overlay.path.as_os_str().to_owned();
    lock.push(".lock");
    let lock = File::options().write(true).create(true).truncate(false).open(lock).expect("a lock");
    lock.lock().expect("it is free");
    refused_untouched(&room, &undo, "another writer has the file open");
    refused_untouched(&room, &[&compact[..], &["--force", "--target", "3k"]].concat(), "writer");
    // Reading commands do not wait.
    assert_eq!(room.json(&["compactions", text(&path)]).as_array().map(Vec::len), Some(1));
    drop(lock);
    assert_eq!(room.json(&undo)["undone"], true);
}

#[test]
fn if_nothing_can_be_stored_the_reason_is_given() {
    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(TURNS)));
    room.write("overlays", "in the way");
    refused_untouched(&room, &["compact", text(&path), "--window", "32000"], "overlays");
    assert_eq!(room.json(&["compact", text(&path), "--window", "32000", "--dry-run"])["ok"], true);
}

#[cfg(unix)]
#[test]
fn a_read_only_home_is_reported() {
    use std::os::unix::fs::PermissionsExt;

    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(TURNS)));
    let overlays = room.path("overlays");
    fs::create_dir(&overlays).expect("a folder");
    fs::set_permissions(&overlays, fs::Permissions::from_mode(0o500)).expect("it is ours");
    // Root can write everywhere.
    if File::create(overlays.join("probe")).is_err() {
        refused_untouched(&room, &["compact", text(&path), "--window", "32000"], "overlays");
    }
    fs::set_permissions(&overlays, fs::Permissions::from_mode(0o700)).expect("it is ours");
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_size_limit_is_an_error_and_stored_data_stays_intact() {
    let room = Room::new();
    for path in [room.write("s.jsonl", join(&pi_lines(TURNS))), formats::ours(&room, TURNS)] {
        let before = fs::read(&path).expect("it is there");
        let compact = ["compact", text(&path), "--window", "32000"];
        // The shell counts in blocks of 512 or 1,024 bytes: enough for the overlay's first line.
        let limited = "ulimit -f 1; exec \"$0\" \"$@\"";
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", limited, env!("CARGO_BIN_EXE_ctx")]).args(compact);
        let ran = Ran::of(shell.env("CTX_HOME", room.path("")).env("NO_COLOR", "1"));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{}", ran.stderr);
        assert!(
            ran.stderr.contains("hint: ") && ran.stderr.contains("ulimit -f"),
            "{}",
            ran.stderr
        );
        assert_eq!(fs::read(&path).expect("it is there"), before);
        assert_eq!(room.json(&["compactions", text(&path)]).as_array().map(Vec::len), Some(0));
        assert_eq!(room.json(&compact)["compacted"], true);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_output_that_cannot_be_written_is_an_error_with_a_hint() {
    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(4)));
    let file = text(&path);
    for args in [
        &["status", file][..],
        &["status", file, "--json"],
        &["replay", file],
        &["convert", file, "--to", "openai"],
        &["config", "schema"],
        &["completions", "bash"],
        &["engines"],
        &["--help"],
        &["--version"],
    ] {
        let full = File::options().write(true).open("/dev/full").expect("Linux has it");
        let ran = Ran::of(room.command(args).stdout(full));
        assert_eq!(ran.code, Some(1), "{args:?}: {}", ran.stderr);
        for said in ["error: ", "No space left", "hint: free some disk space"] {
            assert!(ran.stderr.contains(said), "{args:?}: {said} not in {}", ran.stderr);
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_home_that_cannot_be_created_is_an_error_with_a_hint() {
    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(TURNS)));
    // Not even root can create a folder there.
    for home in ["/proc/no-folder", "/dev/null/home"] {
        for args in [&["compact", text(&path), "--window", "32000"][..], &["status", text(&path)]] {
            let ran = Ran::of(room.command(args).env("CTX_HOME", home));
            if ran.code == Some(0) {
                // `status` neither reads nor writes there.
                assert_eq!((args[0], home), ("status", "/proc/no-folder"));
                continue;
            }
            assert_eq!(ran.code, Some(1), "{args:?}: {}", ran.stderr);
            let error = ran.stderr.split("error: ").nth(1).unwrap_or_default();
            assert!(error.contains(home) && error.contains("CTX_HOME"), "{args:?}: {error}");
            assert!(!error.contains(text(&path)), "{args:?}: {error}");
        }
    }
}

#[cfg(unix)]
#[test]
fn a_read_only_transcript_is_compacted_in_an_overlay() {
    use std::os::unix::fs::PermissionsExt;

    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(TURNS)));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).expect("it is ours");
    assert_eq!(room.json(&["compact", text(&path), "--window", "32000"])["compacted"], true);
    assert_eq!(room.json(&["compact", text(&path), "--undo"])["undone"], true);
}

#[test]
fn two_concurrent_compactions_both_succeed() {
    let room = Room::new();
    for path in [room.write("s.jsonl", join(&pi_lines(TURNS))), formats::ours(&room, TURNS)] {
        let compact = ["compact", text(&path), "--window", "32000", "--json"];
        std::thread::scope(|scope| {
            let runs: Vec<_> = (0..4).map(|_| scope.spawn(|| room.ctx(&compact))).collect();
            for run in runs {
                let ran = run.join().expect("it ran");
                assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            }
        });
        let listed = room.json(&["compactions", text(&path)]);
        assert!(listed.as_array().is_some_and(|listed| !listed.is_empty()), "{listed}");
    }
}

#[cfg(unix)]
#[test]
fn an_interrupt_during_a_models_answer_changes_nothing() {
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
        assert!(provider.wait_arrived(1), "the model is called");
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

/// Returns the signal that ends a child process as Ctrl-C would. Background jobs of a shell ignore
/// Ctrl-C, and their children inherit that.
#[cfg(unix)]
fn interrupt() -> &'static str {
    if is_ignored("INT") { "-TERM" } else { "-INT" }
}

/// Whether this program, and so its children, ignore a signal.
#[cfg(unix)]
pub(crate) fn is_ignored(signal: &str) -> bool {
    let number = match signal {
        "HUP" => 1,
        "INT" => 2,
        _ => return false,
    };
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask >> (number - 1) & 1 == 1)
}

//! Writers in separate processes: locked out, killed, and out of disk space.
//!
//! A test that needs a second process runs this program again with its own name and the variable
//! `CTX_TEST_CHILD` set, and takes the other branch there.

#![allow(clippy::unwrap_used)] // Test helpers are test code.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;

use ctx_core::{ErrorKind, RawJson, Timestamp};
use ctx_session::key::FileId;
use ctx_session::{
    Durability, GroupCommit, Home, LogOptions, NewEntry, NewSession, SessionLog, recover_journals,
};

const CHILD: &str = "CTX_TEST_CHILD";
const NOW: Timestamp = Timestamp(1_765_233_665_306);

/// In the child: returns the folder to work in.
fn child_dir() -> Option<PathBuf> {
    std::env::var_os(CHILD).map(PathBuf::from)
}

/// Starts this program as a child that runs one test. `limit` is the size of the largest file that
/// it may write, in KiB.
fn child(test: &str, dir: &Path, limit: Option<u32>) -> Child {
    let program = std::env::current_exe().unwrap();
    let mut command = match limit {
        None => Command::new(program),
        Some(kib) => {
            // With the signal ignored, a write beyond the limit fails half-way instead of killing.
            let script = format!("trap '' XFSZ; ulimit -f {}; exec \"$0\" \"$@\"", kib * 2);
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(script).arg(program);
            shell
        }
    };
    command
        .args([&*format!("writers::{test}"), "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, dir);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

fn create(path: &Path, options: LogOptions) -> SessionLog {
    let session = NewSession {
        id: FileId::new("s").unwrap(),
        timestamp: NOW,
        cwd: "/".into(),
        parent_session: None,
    };
    SessionLog::create(path, &session, options).unwrap()
}

fn message(text: &str) -> NewEntry {
    NewEntry::message(RawJson::from_text(format!(r#"{{"role":"user","content":"{text}"}}"#)))
}

/// Sends a line to the parent, in one write.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("say {text}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// Extracts the child's lines from the output of the test harness.
fn said(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.map_while(Result::ok).filter_map(|line| {
        // The harness has an open "test name ... " line when the first line arrives.
        line.split_once("say ").map(|(_, said)| said.to_owned())
    })
}

/// Returns the ids of a file of complete lines.
fn ids(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'), "{} is torn", path.display());
    let line = |line| serde_json::from_str::<serde_json::Value>(line).unwrap();
    text.lines().map(|l| line(l)["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_writer_in_another_process_is_respected() {
    if let Some(dir) = child_dir() {
        let log = create(&dir.join("s.jsonl"), LogOptions::default());
        say("open");
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        return log.close().unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let mut other = child("a_writer_in_another_process_is_respected", dir.path(), None);
    let mut lines = said(&mut other);
    assert_eq!(lines.next().as_deref(), Some("open"));
    let error = SessionLog::open(&path, LogOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    drop(other.stdin.take());
    assert!(other.wait().unwrap().success());
    SessionLog::open(&path, LogOptions::default()).unwrap();
}

const SESSIONS: usize = 8;

/// Writes to several sessions through a group until killed, and prints the id of each entry that
/// was reported as durable.
fn write_until_killed(dir: &Path, size: usize) {
    let home = Home::at(dir);
    let group = GroupCommit::open(&home.journals_dir()).unwrap();
    let text = "x".repeat(size);
    let start = Barrier::new(SESSIONS);
    std::thread::scope(|scope| {
        for n in 0..SESSIONS {
            let (group, text, start) = (&group, &text, &start);
            scope.spawn(move || {
                let options = LogOptions {
                    durability: Durability::PerEntry,
                    group: Some(group.clone()),
                    ..LogOptions::default()
                };
                let mut log = create(&dir.join(format!("s{n}.jsonl")), options);
                start.wait();
                loop {
                    let id = log.append(&message(text), NOW).unwrap();
                    say(&format!("{n} {id}"));
                }
            });
        }
    });
}

/// Kills such a writer after it has reported that many entries, with at least one of each session.
/// Returns the reported ids by session.
fn acknowledged(test: &str, dir: &Path, entries: usize) -> HashMap<usize, Vec<String>> {
    let mut writer = child(test, dir, None);
    let mut acknowledged: HashMap<usize, Vec<String>> = HashMap::new();
    let mut lines = said(&mut writer);
    let mut reported = 0;
    while reported < entries || acknowledged.len() < SESSIONS {
        let line = lines.next().unwrap();
        let (session, id) = line.split_once(' ').unwrap();
        acknowledged.entry(session.parse().unwrap()).or_default().push(id.to_owned());
        reported += 1;
    }
    writer.kill().unwrap();
    // The last line may be cut off.
    for line in lines.filter(|l| l.len() == "0 12345678".len()) {
        let (session, id) = line.split_once(' ').unwrap();
        acknowledged.entry(session.parse().unwrap()).or_default().push(id.to_owned());
    }
    assert!(!writer.wait().unwrap().success());
    acknowledged
}

fn journals(dir: &Path) -> usize {
    let listing = std::fs::read_dir(dir.join("journals")).unwrap();
    listing
        .filter(|f| f.as_ref().unwrap().path().extension().is_some_and(|e| e == "journal"))
        .count()
}

#[test]
fn every_acknowledged_entry_survives_a_kill() {
    if let Some(dir) = child_dir() {
        return write_until_killed(&dir, 300);
    }
    for round in 0..8usize {
        let dir = tempfile::tempdir().unwrap();
        let name = "every_acknowledged_entry_survives_a_kill";
        let acknowledged = acknowledged(name, dir.path(), 100 + 57 * round);
        assert_eq!(journals(dir.path()), 1);
        for (n, expected) in acknowledged {
            let path = dir.path().join(format!("s{n}.jsonl"));
            SessionLog::open(&path, LogOptions::default())
                .unwrap()
                .append(&message("y"), NOW)
                .unwrap();
            let found = ids(&path);
            // One more entry may have been written but not reported.
            assert_eq!(found[1..=expected.len()], expected);
            assert!(found.len() <= expected.len() + 3);
        }
        drop(GroupCommit::open(&Home::at(dir.path()).journals_dir()).unwrap());
        assert_eq!(journals(dir.path()), 0);
    }
}

/// After a power cut any unsynced part of the session files may be missing or zeros, depending on
/// the file system. The journal, which was synced, restores it.
#[test]
fn every_acknowledged_entry_survives_a_power_cut() {
    if let Some(dir) = child_dir() {
        return write_until_killed(&dir, 3000);
    }
    let name = "every_acknowledged_entry_survives_a_power_cut";
    for how in 0..4usize {
        let dir = tempfile::tempdir().unwrap();
        let acknowledged = acknowledged(name, dir.path(), 300);
        for &n in acknowledged.keys() {
            let path = dir.path().join(format!("s{n}.jsonl"));
            let mut bytes = std::fs::read(&path).unwrap();
            let header = bytes.iter().position(|b| *b == b'\n').unwrap() + 1;
            let keep = header + (bytes.len() - header) * n / SESSIONS;
            if (n + how) % 2 == 0 {
                bytes.truncate(keep);
            } else {
                bytes[keep..].fill(0);
            }
            std::fs::write(&path, &bytes).unwrap();
        }
        let home = Home::at(dir.path());
        match how {
            // Each session is opened individually, then the home as a whole.
            0 => {}
            1 => assert_eq!(recover_journals(&home.journals_dir()).unwrap(), SESSIONS),
            // A session in use is skipped, and the journal it needs is kept.
            2 => {
                let open = SessionLog::open(&dir.path().join("s3.jsonl"), LogOptions::default());
                let open = open.unwrap();
                assert_eq!(recover_journals(&home.journals_dir()).unwrap(), SESSIONS - 1);
                drop(open);
            }
            _ => drop(GroupCommit::open(&home.journals_dir()).unwrap()),
        }
        for (n, expected) in acknowledged {
            let path = dir.path().join(format!("s{n}.jsonl"));
            let mut log = SessionLog::open(&path, LogOptions::default()).unwrap();
            log.append(&message("y"), NOW).unwrap();
            assert_eq!(ids(&path)[1..=expected.len()], expected, "session {n}, way {how}");
        }
        recover_journals(&home.journals_dir()).unwrap();
        assert_eq!(journals(dir.path()), 0, "way {how}");
    }
}

#[test]
fn a_deleted_session_does_not_come_back() {
    if let Some(dir) = child_dir() {
        return write_until_killed(&dir, 300);
    }
    let dir = tempfile::tempdir().unwrap();
    acknowledged("a_deleted_session_does_not_come_back", dir.path(), 100);
    let gone = dir.path().join("s0.jsonl");
    let reused = dir.path().join("s1.jsonl");
    std::fs::remove_file(&gone).unwrap();
    std::fs::remove_file(&reused).unwrap();
    drop(create(&reused, LogOptions::default()));
    assert_eq!(recover_journals(&Home::at(dir.path()).journals_dir()).unwrap(), SESSIONS - 2);
    assert!(!gone.exists());
    assert_eq!(ids(&reused).len(), 1);
}

/// A full disk, simulated by a limit on the size of files: the write that exceeds it fails
/// half-way.
#[test]
fn a_write_that_fails_leaves_the_file_whole() {
    if let Some(dir) = child_dir() {
        let group = GroupCommit::open(&Home::at(&dir).journals_dir()).unwrap();
        for durability in [Durability::PerEntry, Durability::PerTurn] {
            for group in [None, Some(group.clone())] {
                let name = format!("{durability:?}-{}.jsonl", group.is_some());
                let options = LogOptions { durability, group, ..LogOptions::default() };
                let path = dir.join(name);
                let mut log = create(&path, options);
                let (mut expected, text) = (vec!["s".to_owned()], "x".repeat(700));
                let error = loop {
                    match log.append(&message(&text), NOW) {
                        Ok(id) => expected.push(id.to_string()),
                        Err(e) => break e,
                    }
                };
                assert_eq!(error.kind(), ErrorKind::Io);
                assert_eq!(ids(&path), expected);
                assert_eq!(log.leaf().map(|l| &**l), expected.last().map(|l| &**l));
                // Entries that still fit are stored.
                let before = std::fs::metadata(&path).unwrap().len();
                let space = 64 * 1024 - before;
                if space > 200 {
                    expected.push(log.append(&message("small"), NOW).unwrap().to_string());
                }
                log.close().unwrap();
                assert_eq!(ids(&path), expected);
                say("survived");
            }
        }
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut limited = child("a_write_that_fails_leaves_the_file_whole", dir.path(), Some(64));
    let said = said(&mut limited).filter(|l| l == "survived").count();
    assert!(limited.wait().unwrap().success());
    assert_eq!(said, 4);
}

#[test]
fn many_sessions_in_one_group_all_get_their_entries() {
    let dir = tempfile::tempdir().unwrap();
    let group = GroupCommit::open(&Home::at(dir.path()).journals_dir()).unwrap();
    std::thread::scope(|scope| {
        for n in 0..16usize {
            let (dir, group) = (dir.path(), &group);
            scope.spawn(move || {
                let per_entry = n % 2 == 0;
                let durability = if per_entry { Durability::PerEntry } else { Durability::PerTurn };
                let group = Some(group.clone());
                let options = LogOptions { durability, group, ..LogOptions::default() };
                let path = dir.join(format!("s{n}.jsonl"));
                let mut log = create(&path, options);
                let mut expected = vec!["s".to_owned()];
                for i in 0..40 {
                    // Some entries are too large for the journal.
                    let text = "x".repeat(if i == n { 400 << 10 } else { 100 });
                    expected.push(log.append(&message(&text), NOW).unwrap().to_string());
                    if i % 5 == 0 {
                        log.commit().unwrap();
                    }
                }
                log.close().unwrap();
                assert_eq!(ids(&path), expected);
                assert_eq!(
                    File::open(dir.join(format!("s{n}.jsonl.lock")))
                        .unwrap()
                        .metadata()
                        .unwrap()
                        .len(),
                    0
                );
            });
        }
    });
    assert_eq!(journals(dir.path()), 1);
    drop(group);
    assert_eq!(journals(dir.path()), 0);
}

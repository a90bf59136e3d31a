use std::path::PathBuf;

use ctx_config::Config;
use ctx_core::{Message, Role, Timestamp};
use ctx_session::key::{FileId, SessionKey};
use ctx_session::{
    Home, LogOptions, NewSession, SessionEntry, SessionLog, SessionStore, Sessions, Transcript,
    retired_at,
};

use super::*;

const DAY: i64 = 86_400_000;
const NOW: Timestamp = Timestamp(1_769_940_000_000);

/// A home with sessions of different ages.
struct House {
    dir: tempfile::TempDir,
    config: Config,
}

fn main_agent() -> FileId {
    FileId::main()
}

fn key(name: &str) -> SessionKey {
    format!("agent:main:{name}").parse().unwrap()
}

impl House {
    fn new(maintenance: &str, more: &str) -> Self {
        let config = format!("{{ session: {{ maintenance: {{ {maintenance} }} }}, {more} }}");
        Self { dir: tempfile::tempdir().unwrap(), config: Config::parse(&config).unwrap() }
    }

    fn home(&self) -> Home {
        Home::at(self.dir.path())
    }

    fn folder(&self) -> PathBuf {
        self.home().sessions_dir(&main_agent())
    }

    fn store(&self) -> SessionStore {
        SessionStore::at(self.home().sessions_file(&main_agent()))
    }

    fn sessions(&self) -> Sessions {
        self.store().load().unwrap()
    }

    /// Creates a transcript with one message. Returns its path.
    fn transcript(&self, id: &str, text: &str) -> PathBuf {
        let path = self.folder().join(format!("{id}.jsonl"));
        let new = NewSession {
            id: id.parse().unwrap(),
            timestamp: NOW,
            cwd: "/".into(),
            parent_session: None,
        };
        let mut log = SessionLog::create(&path, &new, LogOptions::default()).unwrap();
        log.append_message(&Message::text(Role::User, text), NOW).unwrap();
        log.close().unwrap();
        path
    }

    fn enter(&self, key: &SessionKey, entry: SessionEntry) {
        self.store().update(|sessions| sessions.insert(key, entry)).unwrap();
    }

    /// Creates a session that was last used this number of days ago. Its id is its name.
    fn session(&self, name: &str, days: i64) -> PathBuf {
        let path = self.transcript(name, &format!("this was said in {name}"));
        self.enter(&key(name), SessionEntry::new(name, Timestamp(NOW.0 - days * DAY)));
        path
    }

    fn maintain(&self, dry_run: bool) -> MaintenanceReport {
        let (home, agent) = (self.home(), main_agent());
        maintain(&home, &self.config, &agent, NOW, dry_run, &mut |_, _| {}).unwrap()
    }

    /// Lists the files in the folder, without locks and the store. Archived files are marked.
    fn files(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.folder()).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names
            .filter(|name| !name.ends_with(".lock") && name != "sessions.json")
            .map(|name| {
                name.split(".deleted.").next().unwrap().to_owned()
                    + if name.contains(".deleted.") { " archived" } else { "" }
            })
            .collect();
        names.sort();
        names
    }

    fn keys(&self) -> Vec<String> {
        self.sessions().all().map(|(key, _)| key.replace("agent:main:", "")).collect()
    }

    fn remembered(&self) -> String {
        let file = self.home().memory_dir(&main_agent()).join("segments.jsonl");
        std::fs::read_to_string(file).unwrap_or_default()
    }
}

fn done(report: &MaintenanceReport) -> Vec<(String, Action, Reason)> {
    let name = |done: &MaintainedSession| match &done.session_key {
        Some(key) => key.replace("agent:main:", ""),
        None => {
            let name = done.file.as_ref().unwrap().file_name().unwrap().to_str().unwrap();
            name.split(".jsonl").next().unwrap().to_owned()
        }
    };
    report.done.iter().map(|done| (name(done), done.act, done.why)).collect()
}

const MEMORY: &str = "agents: { defaults: { memoryContext: { enabled: true } } }";

#[test]
fn an_old_session_is_removed_and_its_transcript_renamed() {
    let house = House::new("", "");
    let old = house.session("old", 31);
    house.session("young", 29);
    let bytes = std::fs::read(&old).unwrap();
    let report = house.maintain(false);
    assert_eq!(done(&report), [("old".to_owned(), Action::Archived, Reason::Age)]);
    assert_eq!((report.entries_before, report.entries_after), (2, 1));
    assert_eq!(house.keys(), ["young"]);
    assert_eq!(house.files(), ["old.jsonl archived", "young.jsonl"]);
    let archived = report.done[0].archived_as.clone().unwrap();
    assert_eq!((retired_at(&archived), std::fs::read(&archived).unwrap()), (Some(NOW), bytes));
    assert_eq!(Transcript::open(&archived).unwrap().all_messages().len(), 1);
    assert!(house.maintain(false).is_nothing(), "there is nothing left to do");
}

#[test]
fn a_dry_run_gives_the_same_report_and_changes_nothing() {
    let house = House::new("maxEntries: 1, maxDiskBytes: 1, resetArchiveRetention: 1", MEMORY);
    for (name, days) in [("a", 40), ("b", 3), ("c", 2)] {
        house.session(name, days);
    }
    house.transcript("orphan", "nobody has this one");
    let snapshot = || -> Vec<_> {
        let files = std::fs::read_dir(house.folder()).unwrap().map(|file| file.unwrap().path());
        let mut files: Vec<_> =
            files.map(|file| (file.clone(), std::fs::read(file).unwrap())).collect();
        files.sort();
        files
    };
    let before = snapshot();
    let dry = house.maintain(true);
    assert_eq!((snapshot(), house.remembered()), (before, String::new()));
    let wet = house.maintain(false);
    let acts = |report: &MaintenanceReport| {
        let acts = done(report).into_iter();
        acts.map(|(name, act, why)| format!("{name} {act:?} {why:?}")).collect::<Vec<_>>()
    };
    assert_eq!(acts(&dry), acts(&wet));
    assert!(dry.dry_run && dry.done.len() >= 6, "{:?}", acts(&dry));
    assert_eq!((dry.entries_after, dry.bytes_after), (wet.entries_after, wet.bytes_after));
}

#[test]
fn the_oldest_sessions_beyond_the_limit_are_removed() {
    let house = House::new("maxEntries: 40", "");
    for n in 0..100 {
        house.session(&format!("s{n:02}"), n % 25);
    }
    let report = house.maintain(false);
    assert_eq!(
        (report.done.len(), report.entries_after, house.sessions().all().count()),
        (60, 40, 40)
    );
    let oldest_left = house.sessions().all().map(|(_, entry)| entry.updated_at).min().unwrap();
    assert_eq!(oldest_left, Timestamp(NOW.0 - 9 * DAY));
    assert_eq!(house.files().iter().filter(|name| name.ends_with("archived")).count(), 60);
}

#[test]
fn an_open_session_is_kept_until_it_is_closed() {
    let house = House::new("", "");
    let path = house.session("old", 31);
    let log = SessionLog::open(&path, LogOptions::default()).unwrap();
    for dry_run in [true, false] {
        let report = house.maintain(dry_run);
        assert_eq!(report.done, []);
        assert_eq!(report.kept[0].because, "it is open");
        assert_eq!((house.keys(), path.exists()), (vec!["old".to_owned()], true));
    }
    drop(log);
    assert_eq!(house.maintain(false).done.len(), 1);
}

#[test]
fn removed_sessions_are_archived_only_if_memory_is_enabled() {
    for (more, is_there) in [(MEMORY, true), ("", false)] {
        let house = House::new("", more);
        house.session("old", 31);
        house.session("young", 1);
        house.maintain(false);
        let remembered = house.remembered();
        assert_eq!(remembered.contains("this was said in old"), is_there, "{remembered}");
        assert!(!remembered.contains("said in young"));
    }
}

#[test]
fn a_session_that_cannot_be_archived_is_kept() {
    let house = House::new("maxDiskBytes: 1", MEMORY);
    house.session("old", 31);
    // Its folder cannot be created, as a file is in the way.
    let memory = house.home().memory_dir(&main_agent());
    std::fs::create_dir_all(memory.parent().unwrap()).unwrap();
    std::fs::write(&memory, "in the way").unwrap();
    let report = house.maintain(false);
    assert_eq!(report.done, []);
    assert_eq!(
        (house.keys(), house.files()),
        (vec!["old".to_owned()], vec!["old.jsonl".to_owned()])
    );
    let kept = report.kept.iter().find(|kept| kept.why == Reason::Age).unwrap();
    assert!(kept.because.contains("memory") || kept.because.contains("archive"), "{kept:?}");
}

#[test]
fn too_much_disk_removes_archived_transcripts_then_the_oldest_sessions() {
    let house = House::new("pruneAfter: 1000", MEMORY);
    let path = house.session("archived", 900);
    let older = house.folder().join("older.jsonl.deleted.2020-02-01T10-00-00.000Z");
    std::fs::copy(&path, &older).unwrap();
    for (name, days) in [("b", 20), ("a", 30), ("c", 1)] {
        house.session(name, days);
    }
    let all = house.maintain(true).bytes_before;
    let one = std::fs::metadata(&path).unwrap().len();
    // Slightly more than two transcripts must be removed.
    let maintenance = format!(
        "pruneAfter: 1000, maxDiskBytes: {}, highWaterBytes: {}",
        all - 1,
        all - 2 * one - 1
    );
    let config = format!("{{ session: {{ maintenance: {{ {maintenance} }} }}, {MEMORY} }}");
    let house = House { config: Config::parse(&config).unwrap(), ..house };
    let report = house.maintain(false);
    assert_eq!(
        done(&report),
        [
            ("older".to_owned(), Action::Removed, Reason::Disk),
            ("archived".to_owned(), Action::Archived, Reason::Disk),
            ("archived".to_owned(), Action::Removed, Reason::Disk),
            ("a".to_owned(), Action::Archived, Reason::Disk),
            ("a".to_owned(), Action::Removed, Reason::Disk),
        ]
    );
    assert_eq!(house.keys(), ["b", "c"]);
    assert_eq!(house.files(), ["b.jsonl", "c.jsonl"]);
    assert!(house.remembered().contains("this was said in a\""), "{}", house.remembered());
    assert!(report.bytes_after < all - 2 * one, "{report:?}");
    assert!(house.maintain(false).is_nothing());
}

#[test]
fn without_memory_a_new_archive_file_is_kept_in_the_same_run() {
    let house = House::new("pruneAfter: 1000, maxDiskBytes: 1, highWaterBytes: 0", "");
    house.session("a", 20);
    let report = house.maintain(false);
    assert_eq!(done(&report), [("a".to_owned(), Action::Archived, Reason::Disk)]);
    assert_eq!(house.files(), ["a.jsonl archived"]);
    let report = house.maintain(false);
    assert_eq!(done(&report), [("a".to_owned(), Action::Removed, Reason::Disk)]);
    assert_eq!(house.files(), [""; 0]);
}

#[test]
fn archived_transcripts_are_kept_as_long_as_configured() {
    for (keys, left) in [("", 2), ("resetArchiveRetention: '7d'", 1)] {
        let house = House::new(keys, "");
        std::fs::create_dir_all(house.folder()).unwrap();
        for name in
            ["x.jsonl.deleted.2026-01-20T10-00-00.000Z", "y.jsonl.reset.2026-01-30T10-00-00.000Z"]
        {
            std::fs::write(house.folder().join(name), "{}").unwrap();
        }
        house.maintain(false);
        assert_eq!(house.files().len(), left);
    }
}

#[test]
fn a_shared_transcript_is_not_moved() {
    let house = House::new("", "");
    let shared = house.session("shared", 31);
    let name = shared.file_name().unwrap().to_str().unwrap().to_owned();
    let other = SessionEntry { session_file: Some(name), ..SessionEntry::new("other", NOW) };
    house.enter(&key("other"), other);
    let elsewhere = house.dir.path().join("elsewhere.jsonl");
    std::fs::write(&elsewhere, "{}\n").unwrap();
    let file = Some(elsewhere.display().to_string());
    let away = SessionEntry { session_file: file, ..SessionEntry::new("away", Timestamp(1)) };
    house.enter(&key("away"), away);
    house.enter(&key("gone"), SessionEntry::new("gone", Timestamp(1)));
    let foreign = house.folder().join("foreign.jsonl");
    std::fs::write(&foreign, "{\"type\":\"session\",\"version\":3,\"id\":\"foreign\"}\n").unwrap();
    house.enter(&key("foreign"), SessionEntry::new("foreign", Timestamp(1)));
    let report = house.maintain(false);
    assert_eq!((report.done.len(), report.kept.len()), (4, 0), "{report:?}");
    assert!(report.done.iter().all(|done| done.act == Action::Forgotten));
    assert_eq!(house.keys(), ["other"]);
    assert!(shared.exists() && elsewhere.exists() && foreign.exists());
}

#[test]
fn unreadable_store_entries_are_left_alone() {
    let house = House::new("pruneAfter: 1000, maxDiskBytes: 1, highWaterBytes: 0", MEMORY);
    let odd = house.transcript("odd", "hello");
    let orphan = house.transcript("orphan", "hello");
    let store = house.store();
    store.update(|_| Ok(())).unwrap();
    let unknown = "{\"shape:of:tomorrow\": {\"sessionId\": \"odd\", \"updatedAt\": 1}";
    let path = house.home().sessions_file(&main_agent());
    std::fs::write(&path, format!("{unknown}, \"agent:main:x\": 7}}")).unwrap();
    // One entry does not name its transcript, so every transcript may be its own.
    assert_eq!(house.maintain(false).done, []);
    assert!(odd.exists() && orphan.exists());
    std::fs::write(&path, format!("{unknown}}}")).unwrap();
    let report = house.maintain(false);
    assert_eq!(done(&report).len(), 2, "the orphan is archived, then removed: {report:?}");
    assert!(odd.exists() && !orphan.exists());
    std::fs::write(&path, "{").unwrap();
    let (home, agent) = (house.home(), main_agent());
    let damaged = maintain(&home, &house.config, &agent, NOW, false, &mut |_, _| {});
    assert_eq!(damaged.unwrap_err().kind(), ctx_core::ErrorKind::Corrupt);
    assert!(odd.exists());
}

#[test]
fn a_stopped_run_leaves_the_rest_for_the_next() {
    let house = House::new("maxDiskBytes: 1, resetArchiveRetention: '1h'", MEMORY);
    for n in 0..10 {
        house.session(&format!("s{n}"), 40);
    }
    let (home, agent) = (house.home(), main_agent());
    let stop: Arc<AtomicBool> = Arc::default();
    let run =
        MaintenanceRun::of(&home, &house.config, &agent, None, NOW).unwrap().until(stop.clone());
    let report = run.run(&mut |done, _| stop.store(done == 3, Ordering::Relaxed)).unwrap();
    assert_eq!(report.done.len(), 3, "{report:?}");
    assert_eq!((house.keys().len(), report.entries_after), (7, 7));
    assert_eq!(house.files().iter().filter(|name| name.ends_with("archived")).count(), 3);
}

#[test]
fn progress_is_reported_and_a_missing_folder_is_empty() {
    let house = House::new("", "");
    assert!(house.maintain(false).is_nothing());
    for n in 0..40 {
        house.session(&format!("s{n}"), 40);
    }
    let mut reported = Vec::new();
    let mut progress = |done: usize, of: usize| reported.push((done, of));
    maintain(&house.home(), &house.config, &main_agent(), NOW, false, &mut progress).unwrap();
    assert_eq!(
        (reported.len(), reported.first(), reported.last()),
        (40, Some(&(1, 40)), Some(&(40, 40)))
    );
    assert_eq!(house.keys(), [""; 0]);
}

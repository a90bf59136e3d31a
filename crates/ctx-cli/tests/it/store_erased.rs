//! Text that one host erases leaves the shared store and the other hosts.

use std::path::{Path, PathBuf};

use crate::store::Store;
use crate::support::{Room, text};

const MARKER: &str = "Zebraheron4711";

/// Runs a turn in a room.
fn turn(store: &Store, room: &Room, session: &str, message: &str) {
    let ran = store.run_in(room, &["chat", "--demo", "-s", session, "-p", message]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

/// Returns the files of a room that contain the marker.
fn holding(room: &Room) -> Vec<PathBuf> {
    let marker = MARKER.to_lowercase();
    let holds = |bytes: &[u8]| String::from_utf8_lossy(bytes).to_lowercase().contains(&marker);
    let files = room.files().into_iter().filter(|(_, (bytes, _))| holds(bytes));
    files.map(|(path, _)| path).collect()
}

/// Returns the tables with a row that contains the marker.
fn tables_holding(store: &Store) -> Vec<String> {
    let tables = "select tablename from pg_tables where schemaname = 'ctx' order by 1";
    let hex: String = MARKER.bytes().map(|byte| format!("{byte:02x}")).collect();
    let holds = |table: &str| {
        let sql = format!(
            "select count(*) from ctx.{table} as it
             where it::text ilike '%{MARKER}%' or it::text ilike '%{hex}%'"
        );
        store.server.sql(&sql) != "0"
    };
    let tables = store.server.sql(tables);
    tables.lines().filter(|table| holds(table)).map(str::to_owned).collect()
}

fn sessions(room: &Room) -> PathBuf {
    room.path("agents/demo/sessions")
}

/// Returns the files of a room's sessions, sorted.
fn transcripts(folder: &Path) -> Vec<PathBuf> {
    let files =
        std::fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path());
    let mut files: Vec<_> = files.filter(|f| f.extension().is_some_and(|e| e == "jsonl")).collect();
    files.sort();
    files
}

/// A store, and a second host. Both have the marker in a session and in their memories; a session
/// that was reset has it, too.
fn two_hosts() -> Option<(Store, Room)> {
    let (store, other) = (Store::new()?, Room::new());
    turn(&store, &store.room, "old", &format!("remember: the gate code is {MARKER}"));
    store.server.sql("delete from ctx.session");
    std::fs::remove_file(sessions(&store.room).join("sessions.json")).expect("there is one");
    let decision = format!("We decided to use PostgreSQL on port 7431 with {MARKER}.");
    turn(&store, &store.room, "one", &decision);
    let folder = sessions(&store.room);
    let archived = store.ok(&["memory", "ingest", "--agent", "demo", text(&folder)]);
    assert!(archived.contains("1 new"), "{archived}");
    turn(&store, &store.room, "two", "hello");
    turn(&store, &other, "one", "which port?");
    assert_eq!(tables_holding(&store), ["line", "record"]);
    assert!(!holding(&other).is_empty() && !holding(&store.room).is_empty());
    for room in [&store.room, &other] {
        let files = transcripts(&sessions(room));
        let holds = |file: &&PathBuf| holding(room).iter().any(|of| file.ends_with(of));
        let mut unstored = files.iter().find(holds).expect("one").clone().into_os_string();
        unstored.push(".unstored-1");
        std::fs::write(unstored, MARKER).expect("it is writable");
    }
    Some((store, other))
}

/// Checks that the marker is nowhere once the other host has made a turn, and that both work on.
fn check_erased(store: &Store, other: &Room) {
    assert_eq!(holding(&store.room), Vec::<PathBuf>::new());
    assert_eq!(tables_holding(store), Vec::<String>::new());
    turn(store, other, "two", "hello again");
    assert_eq!(holding(other), Vec::<PathBuf>::new());
    turn(store, other, "one", "and now?");
    turn(store, &store.room, "one", "and here?");
    assert!(store.ok(&["store", "check"]).contains("can be used"));
    assert_eq!(tables_holding(store), Vec::<String>::new());
}

const FORGET: [&str; 5] = ["memory", "forget", "--matching", MARKER, "--yes"];

#[test]
fn what_one_host_forgets_is_forgotten_by_all() {
    let Some((store, other)) = two_hosts() else { return };
    let dry = store.ok(&["memory", "forget", "--matching", MARKER, "--dry-run"]);
    assert!(dry.contains("segment"), "{dry}");
    assert_eq!(tables_holding(&store), ["line", "record"]);
    store.ok(&FORGET);
    check_erased(&store, &other);
    let again = store.ok(&FORGET);
    assert!(again.contains("nothing to forget"), "{again}");
}

#[test]
fn a_host_without_the_sessions_forgets_them() {
    let Some((store, other)) = two_hosts() else { return };
    let third = Room::new();
    let ran = store.run_in(&third, &FORGET);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(holding(&third), Vec::<PathBuf>::new());
    turn(&store, &store.room, "two", "hello");
    check_erased(&store, &other);
}

#[test]
fn an_interrupted_forgetting_is_completed_by_the_next() {
    let failures = [
        ("ctx.record", "new.body is null and new.kind = 'fact'"),
        ("ctx.record", "new.body is null and new.kind = 'segment'"),
        ("ctx.log", "new.generation > old.generation"),
    ];
    let Some((store, other)) = two_hosts() else { return };
    store.server.sql(
        "create function ctx.fail() returns trigger language plpgsql as
         $$ begin raise exception 'interrupted'; end $$",
    );
    for (table, when) in failures {
        store.server.sql(&format!(
            "create trigger fail before update on {table} for each row when ({when})
             execute function ctx.fail()"
        ));
        let ran = store.run(&FORGET);
        assert_eq!(ran.code, Some(1), "{}", ran.stdout);
        assert!(ran.stderr.contains("interrupted"), "{}", ran.stderr);
        assert!(!tables_holding(&store).is_empty());
        store.server.sql(&format!("drop trigger fail on {table}"));
    }
    store.ok(&FORGET);
    assert!(!store.room.path("agents/demo/erasing.json").exists());
    check_erased(&store, &other);
}

#[test]
fn a_session_that_is_held_is_named_with_its_holder() {
    let Some((store, _)) = two_hosts() else { return };
    store.room.write("ctx.json5", r#"{"store": {"waitSeconds": 0}}"#);
    store.server.sql(
        "insert into ctx.host values ('default', 'host 7', 1, now() + interval '1 hour');
         update ctx.lease set holder = 'host 7' where key like '%one'",
    );
    let ran = store.run(&FORGET);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("host 7") && ran.stderr.contains(":one"), "{}", ran.stderr);
    assert_eq!(tables_holding(&store), ["line", "record"]);
}

#[test]
fn hosts_do_not_bring_an_erased_tenant_back() {
    let Some((store, other)) = two_hosts() else { return };
    assert!(store.ok(&["store", "erase", "--confirm", "default"]).contains("erased"));
    assert_eq!(tables_holding(&store), Vec::<String>::new());
    let imported = store.run(&["store", "import"]);
    assert!(imported.stderr.contains("was erased in the store"), "{}", imported.stderr);
    turn(&store, &other, "two", "hello");
    assert_eq!(holding(&other), Vec::<PathBuf>::new());
    assert_eq!(transcripts(&sessions(&other)).len(), 1);
    turn(&store, &store.room, "one", "hello");
    assert_eq!(holding(&store.room), Vec::<PathBuf>::new());
    assert_eq!(tables_holding(&store), Vec::<String>::new());
    assert!(store.ok(&["store", "status"]).contains("2 sessions"));
    // What the erasure has left goes, and what is in use stays.
    let kept: serde_json::Value =
        serde_json::from_str(&store.ok(&["store", "vacuum", "--json"])).expect("JSON");
    assert_eq!((&kept["logs"], &kept["forgotten"]), (&0.into(), &0.into()));
    let vacuum = store.ok(&["store", "vacuum", "--days", "0"]);
    assert!(vacuum.contains("deleted 3 removed logs"), "{vacuum}");
    assert!(store.ok(&["store", "check"]).contains("can be used"));
    turn(&store, &other, "one", "which port?");
}

#[test]
fn a_session_is_removed_from_the_store_and_from_other_hosts() {
    let Some((store, other)) = two_hosts() else { return };
    let key = "agent:demo:explicit:one";
    let unconfirmed = store.run(&["store", "remove", key]);
    assert!(unconfirmed.stderr.contains("--confirm agent:demo"), "{}", unconfirmed.stderr);
    assert!(store.ok(&["store", "remove", key, "--confirm", key]).contains("removed agent:demo"));
    let missing = store.run(&["store", "remove", key, "--confirm", key]);
    assert!(missing.stderr.contains("has no session of this key"), "{}", missing.stderr);
    assert_eq!(transcripts(&sessions(&store.room)).len(), 2);
    turn(&store, &other, "two", "hello");
    let left = transcripts(&sessions(&other));
    let text = std::fs::read_to_string(&left[0]).expect("it is readable");
    assert!(left.len() == 1 && !text.contains(MARKER), "{text}");
    turn(&store, &other, "one", "a new one");
    assert!(store.ok(&["store", "status"]).contains("2 sessions"));
}

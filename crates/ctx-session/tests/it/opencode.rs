//! Sessions in opencode's database: the tables of version 1.18.33, with a session that it wrote.

// Test helpers are test code.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ctx_core::{ErrorKind, Role};
use ctx_session::{Agent, AgentHomes, DiscoveredSession, Discovery, Home, Overlay, Transcript};
use rusqlite::Connection;
use tempfile::TempDir;

const RECORDED: &str = include_str!("../data/opencode-1.18.33.sql");
const SESSION: &str = "ses_dfac11359ffeiUb100yKdyWQcQ";
const SUBAGENT: &str = "ses_dfac0dcbfffemw5SjFaxpLS9Er";

struct Opencode {
    dir: TempDir,
    /// A running opencode: while it is open, the newest rows are only in the journal.
    db: Connection,
}

impl Opencode {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let db = Connection::open(dir.path().join("opencode.db")).unwrap();
        db.execute_batch("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;").unwrap();
        db.execute_batch(&format!("BEGIN; {RECORDED} COMMIT;")).unwrap();
        Self { dir, db }
    }

    fn database(&self) -> PathBuf {
        self.dir.path().join("opencode.db")
    }

    fn session(&self) -> PathBuf {
        self.database().join(SESSION)
    }

    fn homes(&self) -> AgentHomes {
        AgentHomes::default().with(Agent::OPENCODE, self.dir.path())
    }

    fn only(&self) -> DiscoveredSession {
        let found = self.homes().sessions();
        assert!(found.problems.is_empty(), "{:?}", found.problems);
        assert_eq!(found.sessions.len(), 1, "{:?}", found.sessions);
        found.sessions.into_iter().next().unwrap()
    }

    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let files = fs::read_dir(self.dir.path()).unwrap().map(|file| file.unwrap().path());
        files.map(|file| (file.clone(), fs::read(file).unwrap())).collect()
    }

    /// Calls every reader of the database, and returns the results.
    fn read(&self) -> (DiscoveredSession, Vec<String>) {
        let found = self.only();
        assert_eq!(found.last_usage().unwrap().prompt_tokens, 11_860);
        let transcript = Transcript::open(&found.path).unwrap();
        let said = transcript.main_line().unwrap();
        let said = said.iter().map(|item| item.entry.message().unwrap().plain_text()).collect();
        (found, said)
    }
}

#[test]
fn sessions_are_found_by_folder_and_id_without_subagents() {
    let opencode = Opencode::new();
    let found = opencode.only();
    assert_eq!((found.agent, found.session_id.as_str()), (Agent::OPENCODE, SESSION));
    assert_eq!((found.path.clone(), found.modified.0), (opencode.session(), 1_795_384_372_152));
    assert_eq!(found.project.as_deref(), Some(Path::new("/home/ada/shop")));
    assert!(found.bytes > 10_000, "{}", found.bytes);
    let homes = opencode.homes();
    assert_eq!(homes.newest_in(Path::new("/home/ada/shop/src")).unwrap(), found);
    assert_eq!(homes.named("ses_dfac11").unwrap(), found);
    assert_eq!(homes.named(SUBAGENT).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(
        Discovery::in_folder(opencode.dir.path()).unwrap().sessions,
        std::slice::from_ref(&found)
    );
    assert_eq!(DiscoveredSession::at(&found.path).unwrap(), found);
}

#[test]
fn a_session_reads_as_its_export_with_the_usage_of_every_answer() {
    let opencode = Opencode::new();
    let transcript = Transcript::open(&opencode.session()).unwrap();
    assert!(transcript.problems.is_empty(), "{:?}", transcript.problems);
    let header = &transcript.header;
    assert_eq!(
        (header.id.as_deref(), header.cwd.as_deref()),
        (Some(SESSION), Some("/home/ada/shop"))
    );
    let reported = transcript.reported().unwrap();
    let prompts: u64 = reported.iter().map(|answer| answer.usage.prompt()).sum();
    // The sums that opencode itself stores: `tokens_input` and `tokens_cache_read`.
    assert_eq!(prompts, 22_726 + 46_112);
    let context = transcript.context(None).unwrap();
    let said: Vec<_> = context.entries.iter().map(|entry| entry.message().unwrap()).collect();
    assert_eq!(said[0].role, Role::CompactionSummary);
    assert_eq!(said[0].plain_text(), "OTHER 12");
    assert_eq!(said[1].plain_text(), "\"BIGREAD 2\"");
    assert_eq!(said.last().unwrap().plain_text(), "OTHER 15");
    let results: Vec<_> = transcript
        .main_line()
        .unwrap()
        .iter()
        .flat_map(|item| item.entry.message().unwrap().tool_results().cloned().collect::<Vec<_>>())
        .map(|result| result.is_error)
        .collect();
    assert_eq!(results, [false, true, false, false, false, false]);
}

#[test]
fn the_messages_that_a_compaction_keeps_stay() {
    let opencode = Opencode::new();
    let tail = "msg_2053f4979001eG0XYt0OrcoHAA";
    let keeps = format!(
        "UPDATE part SET data = json_set(data, '$.tail_start_id', '{tail}')
         WHERE json_extract(data, '$.type') = 'compaction'"
    );
    opencode.db.execute_batch(&keeps).unwrap();
    let context = Transcript::open(&opencode.session()).unwrap().context(None).unwrap();
    assert_eq!(&**context.entries[1].id(), tail);
    // A failed summary is not a compaction.
    opencode
        .db
        .execute_batch(
            "UPDATE message SET data = json_set(data, '$.error', json('{\"name\":\"Aborted\"}'))
             WHERE json_extract(data, '$.summary') = 1",
        )
        .unwrap();
    let context = Transcript::open(&opencode.session()).unwrap().context(None).unwrap();
    assert_eq!(context.entries[0].message().unwrap().role, Role::User);
}

#[test]
fn the_newest_rows_are_read_and_nothing_is_written() {
    let opencode = Opencode::new();
    opencode.read();
    opencode
        .db
        .execute_batch(
            "INSERT INTO message SELECT 'msg_3', session_id, time_created + 90000, time_updated + 90000,
                 data FROM message WHERE id = 'msg_2053f6078001o1pqZH4Uk1yR3T';
             INSERT INTO part VALUES ('prt_3', 'msg_3', (SELECT session_id FROM message
                 WHERE id = 'msg_3'), 1795384469999, 1795384469999, '{\"type\":\"text\",\"text\":\"new\"}');",
        )
        .unwrap();
    let (found, said) = opencode.read();
    assert_eq!(found.modified.0, 1_795_384_469_999);
    assert_eq!(said.last().unwrap(), "new");
    // Killed: journal and index remain. (`ctx-cli` tests a running opencode in another process.)
    let killed =
        Opencode { dir: TempDir::new().unwrap(), db: Connection::open_in_memory().unwrap() };
    for (file, bytes) in opencode.files() {
        fs::write(killed.dir.path().join(file.file_name().unwrap()), bytes).unwrap();
    }
    let before = killed.files();
    assert_eq!(before.len(), 3, "a database, its journal, its index");
    assert_eq!(killed.read().1, said);
    assert!(killed.files() == before);
    // Exited: only the database remains.
    let Opencode { dir, db } = opencode;
    db.close().unwrap();
    let ended = Opencode { dir, db: Connection::open_in_memory().unwrap() };
    let before = ended.files();
    assert_eq!(before.len(), 1);
    assert_eq!(ended.read().1, said);
    assert!(ended.files() == before);
}

#[test]
fn a_database_that_cannot_be_read_is_a_problem_and_hides_nothing() {
    let pi = r#"{"type":"session","version":3,"id":"cccc-1","cwd":"/p"}"#;
    let error_after = |spoil: &dyn Fn(&Opencode)| {
        let opencode = Opencode::new();
        fs::create_dir(opencode.dir.path().join("--p--")).unwrap();
        fs::write(opencode.dir.path().join("--p--/cccc-1.jsonl"), pi).unwrap();
        let homes = opencode.homes().with(Agent::PI, opencode.dir.path());
        spoil(&opencode);
        let mut found = homes.sessions();
        assert_eq!(found.sessions.len(), 1, "{:?}", found.sessions);
        assert_eq!(found.problems.len(), 1, "{:?}", found.problems);
        let error = Transcript::open(&opencode.session()).unwrap_err();
        assert_eq!(error.kind(), found.problems[0].kind());
        let problem = found.problems.remove(0);
        assert!(problem.to_string().contains("opencode.db"), "{problem}");
        assert!(problem.hint_text().is_some());
        problem.kind()
    };
    let locked = |opencode: &Opencode| {
        opencode.db.execute_batch("PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE;").unwrap();
        opencode.db.execute_batch("UPDATE session SET title = 'x'").unwrap();
    };
    assert_eq!(error_after(&locked), ErrorKind::Locked);
    let damaged = |opencode: &Opencode| {
        fs::write(opencode.database(), "SQLite format 3\0 and then something else").unwrap();
        fs::remove_file(opencode.dir.path().join("opencode.db-wal")).unwrap();
    };
    assert_eq!(error_after(&damaged), ErrorKind::Corrupt);
    let newer = |opencode: &Opencode| {
        opencode.db.execute_batch("ALTER TABLE session RENAME COLUMN directory TO place").unwrap();
    };
    assert_eq!(error_after(&newer), ErrorKind::Io);
}

#[test]
fn a_row_with_invalid_json_affects_only_itself() {
    let opencode = Opencode::new();
    let spoil = "UPDATE part SET data = '{\"type\":' WHERE id = 'prt_2053eed45001Zb8TuIhTlZVQBK';
        UPDATE part SET data = x'00ff' WHERE id = 'prt_2053ef830001MhaqrWCS9a3xqq';
        UPDATE message SET data = 'nothing' WHERE id = 'msg_2053ef934001TDNucKnxdX3Lmm';";
    opencode.db.execute_batch(spoil).unwrap();
    let (_, said) = opencode.read();
    assert!(said.len() > 15 && said.contains(&"\"now MISSING\"".to_owned()), "{said:?}");
    let gone = opencode.database().join("ses_none");
    assert_eq!(Transcript::open(&gone).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn files_that_were_moved_to_a_database_are_not_listed_twice() {
    let opencode = Opencode::new();
    let storage = opencode.dir.path().join("storage/session/global");
    fs::create_dir_all(&storage).unwrap();
    for id in [SESSION, "ses_old"] {
        let info = format!(r#"{{"id":"{id}","projectID":"global","directory":"/p"}}"#);
        fs::write(storage.join(format!("{id}.json")), info).unwrap();
    }
    let found = opencode.homes().sessions().sessions;
    let mut ids: Vec<_> = found.iter().map(|found| found.session_id.as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [SESSION, "ses_old"]);
    assert_eq!(opencode.homes().named(SESSION).unwrap().path, opencode.session());
}

#[test]
fn the_overlay_of_a_database_session_is_found_again() {
    let opencode = Opencode::new();
    let home = Home::at(opencode.dir.path().join("home"));
    let path = Overlay::of(&home, &opencode.session()).unwrap().path;
    opencode.db.execute_batch("UPDATE session SET time_updated = time_updated + 1").unwrap();
    assert_eq!(Overlay::of(&home, &opencode.session()).unwrap().path, path);
    assert_ne!(Overlay::of(&home, &opencode.database().join(SUBAGENT)).unwrap().path, path);
    let log = ctx_session::SessionLog::open(&opencode.session(), Default::default());
    assert_eq!(log.unwrap_err().kind(), ErrorKind::UnknownFormat);
}

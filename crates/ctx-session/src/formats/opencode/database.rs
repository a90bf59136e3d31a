//! Read-only access to the sessions in opencode's database. The files beside it are not written
//! either.
//!
//! A session has the path `DATABASE/ID`. Its rows are as in opencode 1.18: the column `data` of
//! `message` and `part` contains what `opencode export` writes, without ids.

use std::path::Path;
use std::time::Duration;

use ctx_core::{Error, ErrorKind, Result};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Row};

use crate::formats::agent::DatabaseSession;

/// How long to wait for a locked database.
const LOCK_WAIT: Duration = Duration::from_millis(500);

const SESSIONS: &str = include_str!("sessions.sql");

const ANSWER: &str = include_str!("answer.sql");

const EXPORT: &str = include_str!("export.sql");

/// Splits a path into the database and the id.
pub(super) fn parts(path: &Path) -> Option<(&Path, &str)> {
    let id = path.file_name()?.to_str().filter(|id| id.starts_with("ses_"))?;
    path.parent().filter(|database| database.is_file()).map(|database| (database, id))
}

/// Returns all sessions, or the one with this id.
pub(super) fn sessions(database: &Path, id: Option<&str>) -> Result<Vec<DatabaseSession>> {
    let row = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
    read(database, |db| db.prepare(SESSIONS)?.query_map([id], row)?.collect())
}

/// Returns the last message of a session that reports usage.
pub(super) fn last_answer(database: &Path, id: &str) -> Result<Option<String>> {
    read(database, |db| db.query_row(ANSWER, [id], |row| row.get(0)).optional())
}

/// Returns the document that `opencode export` would write for a session, with only the fields that
/// ctx reads.
pub(super) fn export(database: &Path, id: &str) -> Result<Vec<u8>> {
    let found = read(database, |db| db.query_row(EXPORT, [id], |row| row.get(0)).optional())?;
    found.map(String::into_bytes).ok_or_else(|| {
        Error::new(ErrorKind::NotFound, "unknown session in opencode's database")
            .with("path", database.display())
            .with("id", id)
            .hint("list its sessions with `ctx sessions --agent opencode`")
    })
}

fn read<T>(database: &Path, query: impl Fn(&Connection) -> rusqlite::Result<T>) -> Result<T> {
    let ran = open(database).and_then(|connection| query(&connection));
    ran.map_err(|error| {
        let kind = match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => ErrorKind::Locked,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => ErrorKind::Corrupt,
            _ => ErrorKind::Io,
        };
        Error::new(kind, "cannot read opencode's database (supported version: 1.18)")
            .with("path", database.display())
            .source(error)
            .hint("try again, or export the session: `opencode export ID > FILE`")
    })
}

/// Opens the database so that nothing is written, not even the index of its journal.
fn open(database: &Path) -> rusqlite::Result<Connection> {
    let name = database.to_string_lossy();
    let beside = |end| Path::new(&format!("{name}{end}")).metadata().is_ok_and(|m| m.len() > 0);
    // If the journal is missing, SQLite would create it and its index; `immutable` prevents this.
    let mode = match ["-wal", "-journal"].into_iter().any(beside) {
        true => "readonly_shm=1",
        false => "immutable=1",
    };
    let name = name.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let name = if cfg!(windows) { format!("/{}", name.replace('\\', "/")) } else { name };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(format!("file:{name}?{mode}"), flags)?;
    connection.busy_timeout(LOCK_WAIT)?;
    Ok(connection)
}

//! The sessions in opencode's database, which is read and never written: nor are the files beside it.
//!
//! A session has the path `DATABASE/ID`. Its rows are those of opencode 1.18: `message` and `part` have
//! in their column `data` what `opencode export` writes, without ids.

use std::path::Path;
use std::time::Duration;

use ctx_core::{Error, ErrorKind, Result};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Row};

/// How long a locked database is waited for.
const LOCK_WAIT: Duration = Duration::from_millis(500);

const SESSIONS: &str = include_str!("sessions.sql");

const ANSWER: &str = include_str!("answer.sql");

const EXPORT: &str = include_str!("export.sql");

/// The database and the id that a path names.
pub(crate) fn parts(path: &Path) -> Option<(&Path, &str)> {
    let id = path.file_name()?.to_str().filter(|id| id.starts_with("ses_"))?;
    path.parent().filter(|database| database.is_file()).map(|database| (database, id))
}

/// Id, folder, milliseconds since 1970 and size of each session; of the one with that id, whoever's it is.
pub(crate) fn sessions(
    database: &Path,
    id: Option<&str>,
) -> Result<Vec<(String, String, i64, i64)>> {
    let row = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
    read(database, |db| db.prepare(SESSIONS)?.query_map([id], row)?.collect())
}

/// The last message of a session that reports what its request held.
pub(crate) fn last_answer(database: &Path, id: &str) -> Result<Option<String>> {
    read(database, |db| db.query_row(ANSWER, [id], |row| row.get(0)).optional())
}

/// The document that `opencode export` would write of a session, with what is read of it.
pub(crate) fn export(database: &Path, id: &str) -> Result<Vec<u8>> {
    let found = read(database, |db| db.query_row(EXPORT, [id], |row| row.get(0)).optional())?;
    found.map(String::into_bytes).ok_or_else(|| {
        Error::new(ErrorKind::NotFound, "opencode's database has no such session")
            .with("path", database.display())
            .with("id", id)
            .hint("`ctx sessions --agent opencode` lists those that it has")
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
        Error::new(kind, "cannot read opencode's database (known is that of 1.18)")
            .with("path", database.display())
            .source(error)
            .hint("try again; ctx reads what `opencode export ID > FILE` writes, too")
    })
}

/// Opens the database so that nothing is written, not even the index of its journal.
fn open(database: &Path) -> rusqlite::Result<Connection> {
    let name = database.to_string_lossy();
    let beside = |end| Path::new(&format!("{name}{end}")).metadata().is_ok_and(|m| m.len() > 0);
    // For a journal that is not there SQLite would make one with its index; without one nobody writes.
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

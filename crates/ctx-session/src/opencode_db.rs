//! The sessions in opencode's database, which is read and never written: nor are the files beside it.
//!
//! A session has the path `DATABASE/ID`. Its rows are those of opencode 1.18: `message` and `part` have
//! in their column `data` what `opencode export` writes, without ids.

use std::path::Path;
use std::time::Duration;

use ctx_core::{Error, ErrorKind, Result};
use ctx_dialect::json::{Fresh, Object, array};
use rusqlite::{Connection, ErrorCode, OpenFlags, Row};

/// How long a locked database is waited for.
const LOCK_WAIT: Duration = Duration::from_millis(500);

/// Sessions with messages: one, or all that are no subagent's.
const SESSIONS: &str = "
    SELECT id, directory,
        max(time_updated,
            (SELECT max(time_updated) FROM message WHERE session_id = session.id),
            coalesce((SELECT max(time_updated) FROM part WHERE session_id = session.id), 0)),
        (SELECT sum(octet_length(data)) FROM message WHERE session_id = session.id)
            + coalesce((SELECT sum(octet_length(data)) FROM part WHERE session_id = session.id), 0)
    FROM session WHERE CASE WHEN ?1 IS NULL THEN parent_id IS NULL ELSE id = ?1 END
        AND EXISTS (SELECT 1 FROM message WHERE session_id = session.id)";

/// A session's messages with their parts, both in their order.
const MESSAGES: &str = "
    SELECT message.id, message.data, part.data
    FROM message LEFT JOIN part ON part.message_id = message.id
    WHERE message.session_id = ?1 ORDER BY message.time_created, message.id, part.id";

const NEWEST: &str =
    "SELECT data FROM message WHERE session_id = ?1 ORDER BY time_created DESC, id DESC";

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

/// What is found first in the messages of a session, the newest first.
pub(crate) fn newest<T>(
    database: &Path,
    id: &str,
    found: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>> {
    read(database, |db| {
        let mut messages = db.prepare(NEWEST)?;
        let mut rows = messages.query([id])?;
        while let Some(row) = rows.next()? {
            if let Some(found) = text(row, 0).and_then(&found) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    })
}

/// The document that `opencode export` would write of a session, with what is read of it.
pub(crate) fn export(database: &Path, id: &str) -> Result<Vec<u8>> {
    let (_, directory, ..) = sessions(database, Some(id))?.pop().ok_or_else(|| {
        Error::new(ErrorKind::NotFound, "opencode's database has no such session")
            .with("path", database.display())
            .with("id", id)
            .hint("`ctx sessions --agent opencode` lists those that it has")
    })?;
    let messages = read(database, |db| {
        let mut messages: Vec<(String, Fresh, Vec<String>)> = Vec::new();
        let mut statement = db.prepare(MESSAGES)?;
        let mut rows = statement.query([id])?;
        while let Some(row) = rows.next()? {
            let id: String = row.get(0)?;
            if messages.last().is_none_or(|(last, ..)| *last != id) {
                let data = text(row, 1).and_then(|data| Object::parse(data).ok());
                let fields = data.iter().flat_map(Object::iter).filter(|(key, _)| *key != "id");
                let info = Fresh::new().text("id", &id);
                let info = fields.fold(info, |info, (key, raw)| info.raw(key, raw.get()));
                messages.push((id, info, Vec::new()));
            }
            // What is no JSON would spoil the document.
            let part = text(row, 2).filter(|part| Object::parse(part).is_ok());
            if let Some((_, _, parts)) = messages.last_mut() {
                parts.extend(part.map(str::to_owned));
            }
        }
        Ok(messages)
    })?;
    let info = Fresh::new().text("id", id).text("directory", &directory);
    let messages = messages.into_iter().map(|(_, info, parts)| {
        Fresh::new().raw("info", info.end()).raw("parts", array(parts)).end()
    });
    Ok(Fresh::new().raw("info", info.end()).raw("messages", array(messages)).end().into_bytes())
}

/// The error of who would write to a session.
pub(crate) fn read_only(path: &Path) -> Error {
    Error::new(ErrorKind::UnknownFormat, "a session of opencode's database is not written to")
        .with("path", path.display())
        .hint("`ctx convert --to ctx` makes a session that can be")
}

fn text<'r>(row: &'r Row<'_>, column: usize) -> Option<&'r str> {
    row.get_ref(column).ok()?.as_str().ok()
}

fn read<T>(database: &Path, query: impl Fn(&Connection) -> rusqlite::Result<T>) -> Result<T> {
    let ran = open(database).and_then(|connection| query(&connection));
    ran.map_err(|error| {
        let (kind, hint) = match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                (ErrorKind::Locked, "opencode has it locked: try again")
            }
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                (ErrorKind::Corrupt, "it is damaged; `ctx` reads the files of `opencode export` too")
            }
            _ => (
                ErrorKind::Io,
                "ctx knows the database of opencode 1.18; the files of `opencode export` it reads too",
            ),
        };
        let error = Error::new(kind, "cannot read opencode's database").source(error);
        error.with("path", database.display()).hint(hint)
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

//! SQLite's own ranking, as a reference.

use ctx_core::{Error, ErrorKind, Result};
use ctx_search::Segment;
use rusqlite::{Connection, params};

const TABLE: &str = "CREATE VIRTUAL TABLE turns USING fts5(text, tokenize = 'porter unicode61')";
const INSERT: &str = "INSERT INTO turns (text) VALUES (?1)";
/// Rows are numbered from 1.
const SEARCH: &str =
    "SELECT rowid - 1 FROM turns WHERE turns MATCH ?1 ORDER BY rank, rowid LIMIT ?2";

/// Turns in a table of SQLite's FTS5, in memory: stems of Porter, BM25 with its constants, any word of
/// the query.
pub(super) struct Fts5Index {
    turns: Connection,
}

impl Fts5Index {
    pub(super) fn new() -> Result<Self> {
        let turns = Connection::open_in_memory().map_err(failed)?;
        turns.execute_batch(TABLE).map_err(failed)?;
        Ok(Self { turns })
    }

    /// Adds turns after the others.
    pub(super) fn add(&mut self, turns: &[Segment]) -> Result<()> {
        let transaction = self.turns.transaction().map_err(failed)?;
        for turn in turns {
            let text = format!("{} {}", turn.name.as_deref().unwrap_or_default(), turn.content);
            transaction.execute(INSERT, [text]).map_err(failed)?;
        }
        transaction.commit().map_err(failed)
    }

    /// Returns the best turns by their number, best first; of equal scores, the earlier first.
    pub(super) fn search(&self, query: &str, limit: usize) -> Result<Vec<usize>> {
        let words = query.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let words: Vec<String> = words.map(|word| format!("\"{word}\"")).collect();
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let mut found = self.turns.prepare_cached(SEARCH).map_err(failed)?;
        let any = words.join(" OR ");
        let rows = found.query_map(params![any, limit], |row| row.get(0)).map_err(failed)?;
        rows.collect::<rusqlite::Result<_>>().map_err(failed)
    }
}

fn failed(error: rusqlite::Error) -> Error {
    Error::new(ErrorKind::Io, "SQLite failed").source(error)
}

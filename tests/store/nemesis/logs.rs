//! The logs in the database, and the files of the hosts.

use std::collections::HashMap;
use std::path::Path;

use ctx_session::key::SessionKey;
use ctx_session::{Home, SessionEntry};
use serde_json::Value;

use crate::check::{Log, Part, StoredLine};
use crate::database::Database;

const SESSIONS: &str = "select json_build_array(key, entry) from ctx.session";

const LINES: &str = "
    select json_build_array(file, seq, epoch, convert_from(body, 'utf8'))
    from ctx.line order by file, seq";

/// Reads all logs.
pub(crate) fn read(database: &Database) -> Vec<Log> {
    let mut sessions = HashMap::new();
    for row in database.sql(SESSIONS).lines() {
        let (key, entry): (String, String) = serde_json::from_str(row).unwrap();
        let (parsed, entry): (SessionKey, SessionEntry) =
            (key.parse().unwrap(), serde_json::from_str(&entry).unwrap());
        let path = Home::at("/").transcript(&parsed, &entry).unwrap();
        let file = path.file_stem().and_then(|name| name.to_str()).expect("it has a name");
        sessions.insert(file.to_owned(), key);
    }
    let mut logs: Vec<Log> = Vec::new();
    for row in database.sql(LINES).lines() {
        let (file, seq, epoch, text): (String, _, _, String) = serde_json::from_str(row).unwrap();
        if logs.last().is_none_or(|log| log.file != file) {
            let session = sessions.get(&file).cloned();
            logs.push(Log { file, session, lines: Vec::new() });
        }
        let line = StoredLine { seq, epoch, part: part(&text), text };
        logs.last_mut().expect("one was added").lines.push(line);
    }
    logs
}

/// Returns whether the file of a log in a home has the lines of the log, and how many.
pub(crate) fn is_prefix(log: &Log, home: &Path) -> Option<usize> {
    let key: SessionKey = log.session.as_ref()?.parse().ok()?;
    let folder = Home::at(home).sessions_dir(key.agent()?);
    let text = std::fs::read_to_string(folder.join(format!("{}.jsonl", log.file))).ok()?;
    let lines: Vec<&str> = text.lines().collect();
    let are_equal = lines.len() <= log.lines.len()
        && text.ends_with('\n')
        && lines.iter().zip(&log.lines).all(|(own, stored)| *own == stored.text);
    are_equal.then_some(lines.len())
}

fn part(line: &str) -> Part {
    let json: Value = serde_json::from_str(line).unwrap_or_default();
    if json["type"] != "message" {
        return Part::Other;
    }
    let message = &json["message"];
    let id = |text: &Value, before: &str| -> Option<u64> {
        let number = text.as_str()?.strip_prefix(before)?.split(' ').next()?;
        number.parse().ok()
    };
    let text = match &message["content"] {
        Value::Array(blocks) => &blocks[0]["text"],
        text => text,
    };
    let found = match message["role"].as_str() {
        Some("user") => id(text, "message ").map(Part::User),
        Some("assistant") => id(text, "answer ")
            .map(Part::Answer)
            .or_else(|| id(&message["content"][0]["id"], "call_").map(Part::Call)),
        Some("toolResult") => match id(text, "result ") {
            Some(own) => Some(Part::Result(own)),
            None => id(&message["toolCallId"], "call_").map(Part::NoResult),
        },
        _ => None,
    };
    found.unwrap_or(Part::Unknown)
}

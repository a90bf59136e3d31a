//! The files below a folder that may be sessions.

use std::fs::{DirEntry, Metadata, ReadDir};
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use ctx_core::{Error, Result, Timestamp};

use super::{Agent, Discovery, FoundSession};
use crate::disk::io_error;
use crate::opencode_db;

/// Folders deeper than that below one that was named hold no sessions.
const DEEPEST: usize = 12;

/// Lists the files below `folder` whose names fit `layout`, a name for each level. A folder that is not
/// there has none.
pub(super) fn expand(agent: Agent, folder: &Path, layout: &[&str], found: &mut Discovery) {
    let Some((name, deeper)) = layout.split_first() else { return };
    let entries = match list(folder) {
        Ok(entries) => entries,
        Err((error, _)) if error.kind() == io::ErrorKind::NotFound => return,
        Err((_, error)) => return found.problems.push(error),
    };
    for entry in entries.flatten().filter(|entry| fits(entry, name)) {
        match entry.file_type() {
            Ok(kind) if kind.is_file() && deeper.is_empty() => found.add(&entry, agent),
            Ok(kind) if kind.is_dir() => expand(agent, &entry.path(), deeper, found),
            _ => {}
        }
    }
}

/// Lists the files below `folder` whose names are those of transcripts, at any depth.
pub(super) fn below(folder: &Path, found: &mut Discovery) -> Result<()> {
    let mut folders = vec![(0, list(folder).map_err(|(_, error)| error)?)];
    while let Some((depth, entries)) = folders.pop() {
        for entry in entries.flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && entry.file_name() != "subagents" && depth < DEEPEST {
                match list(&entry.path()) {
                    Ok(entries) => folders.push((depth + 1, entries)),
                    Err((_, error)) => found.problems.push(error),
                }
            } else if kind.is_file()
                && ["*.jsonl", "session-*", "ses_*.json", "opencode*.db"]
                    .iter()
                    .any(|name| fits(&entry, name))
            {
                found.add(&entry, Agent::Pi);
            }
        }
    }
    Ok(())
}

fn list(folder: &Path) -> Result<ReadDir, (io::Error, Error)> {
    std::fs::read_dir(folder).map_err(|error| {
        let kind = io::Error::from(error.kind());
        (kind, io_error("cannot list the folder", folder, error))
    })
}

impl Discovery {
    /// Adds a file, of which only the name is known, or the sessions of a database. One that went away since is no problem.
    fn add(&mut self, entry: &DirEntry, agent: Agent) {
        if fits(entry, "opencode*.db") {
            match rows(&entry.path(), None) {
                Ok(sessions) => self.sessions.extend(sessions),
                Err(error) => self.problems.push(error),
            }
        } else if let Ok(metadata) = entry.metadata() {
            self.sessions.push(file(entry.path(), agent, &metadata));
        }
    }

    /// Puts the newest first.
    pub(super) fn sort(&mut self) {
        self.sessions.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.path.cmp(&b.path)));
    }
}

pub(super) fn file(path: PathBuf, agent: Agent, metadata: &Metadata) -> FoundSession {
    let modified = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let modified = modified.and_then(|at| i64::try_from(at.as_millis()).ok());
    FoundSession {
        path,
        agent,
        session_id: String::new(),
        project: None,
        modified: Timestamp(modified.unwrap_or(0)),
        bytes: metadata.len(),
    }
}

/// The sessions of opencode's database, or the one of that id.
pub(super) fn rows(database: &Path, id: Option<&str>) -> Result<Vec<FoundSession>> {
    let found = |(id, project, modified, bytes): (String, String, i64, i64)| FoundSession {
        path: database.join(&id),
        agent: Agent::Opencode,
        session_id: id,
        project: Some(project.into()),
        modified: Timestamp(modified),
        bytes: bytes.unsigned_abs(),
    };
    Ok(opencode_db::sessions(database, id)?.into_iter().map(found).collect())
}

/// Whether a name fits a pattern with at most one `*`. Subagents' files are no sessions of their own.
fn fits(entry: &DirEntry, pattern: &str) -> bool {
    let name = entry.file_name();
    let Some(name) = name.to_str() else { return false };
    let Some((begin, end)) = pattern.split_once('*') else { return name == pattern };
    let is_subagent = name.starts_with("agent-") && end == ".jsonl";
    name.len() >= begin.len() + end.len()
        && name.starts_with(begin)
        && name.ends_with(end)
        && !is_subagent
}

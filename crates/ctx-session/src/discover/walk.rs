//! Listing files below a folder that may be sessions.

use std::fs::{DirEntry, Metadata, ReadDir};
use std::path::{Path, PathBuf};

use ctx_core::{ErrorKind, Result, Timestamp};

use super::{DiscoveredSession, Discovery};
use crate::disk::io_error;
use crate::formats::{Agent, Database, DatabaseSession, databases, fits};

/// The maximum depth of sessions below the given folder.
const DEEPEST: usize = 12;

/// Adds the files below `folder` whose names match `layout`, one pattern per level. A missing
/// folder is not an error.
pub(super) fn expand(agent: Agent, folder: &Path, layout: &[&str], found: &mut Discovery) {
    let Some((name, deeper)) = layout.split_first() else { return };
    let entries = match list(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return,
        Err(error) => return found.problems.push(error),
    };
    for entry in entries.flatten().filter(|entry| is_named(entry, name)) {
        match entry.file_type() {
            Ok(kind) if kind.is_file() && deeper.is_empty() => found.add(&entry, agent),
            Ok(kind) if kind.is_dir() => expand(agent, &entry.path(), deeper, found),
            _ => {}
        }
    }
}

/// Adds the files below `folder`, down to `DEEPEST`, that are named like transcripts.
pub(super) fn below(folder: &Path, found: &mut Discovery) -> Result<()> {
    let layouts = || Agent::all().flat_map(|agent| agent.0.layouts);
    let names: Vec<_> = layouts().filter_map(|layout| layout.last()).collect();
    let mut folders = vec![(0, list(folder)?)];
    while let Some((depth, entries)) = folders.pop() {
        for entry in entries.flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && entry.file_name() != "subagents" && depth < DEEPEST {
                match list(&entry.path()) {
                    Ok(entries) => folders.push((depth + 1, entries)),
                    Err(error) => found.problems.push(error),
                }
            } else if kind.is_file() && names.iter().any(|pattern| is_named(&entry, pattern)) {
                found.add(&entry, Agent::PI);
            }
        }
    }
    Ok(())
}

fn list(folder: &Path) -> Result<ReadDir> {
    std::fs::read_dir(folder).map_err(|error| io_error("cannot list the folder", folder, error))
}

impl Discovery {
    /// Adds a file or, if it is a database, the sessions in it. A file that just disappeared is
    /// skipped.
    fn add(&mut self, entry: &DirEntry, agent: Agent) {
        if let Some(database) = databases().find(|database| is_named(entry, database.files)) {
            match rows(database, &entry.path(), None) {
                Ok(sessions) => self.sessions.extend(sessions),
                Err(error) => self.problems.push(error),
            }
        } else if let Ok(metadata) = entry.metadata() {
            self.sessions.push(file(entry.path(), agent, &metadata));
        }
    }

    /// Sorts the newest first.
    pub(super) fn sort(&mut self) {
        self.sessions.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.path.cmp(&b.path)));
    }
}

pub(super) fn file(path: PathBuf, agent: Agent, metadata: &Metadata) -> DiscoveredSession {
    DiscoveredSession {
        path,
        agent,
        session_id: String::new(),
        project: None,
        modified: metadata.modified().map(Timestamp::from).unwrap_or_default(),
        bytes: metadata.len(),
    }
}

/// Returns the sessions of a database in `file`, or the one with that id.
pub(super) fn rows(
    database: &Database,
    file: &Path,
    id: Option<&str>,
) -> Result<Vec<DiscoveredSession>> {
    let found = |(id, project, modified, bytes): DatabaseSession| DiscoveredSession {
        path: file.join(&id),
        agent: database.agent,
        session_id: id,
        project: Some(project.into()),
        modified: Timestamp(modified),
        bytes: bytes.unsigned_abs(),
    };
    Ok((database.sessions)(file, id)?.into_iter().map(found).collect())
}

fn is_named(entry: &DirEntry, pattern: &str) -> bool {
    entry.file_name().to_str().is_some_and(|name| fits(name, pattern))
}

//! The files below a folder that may be sessions.

use std::fs::{DirEntry, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use ctx_core::{Error, Result, Timestamp};

use super::Agent;
use crate::disk::io_error;

/// Folders deeper than that below one that was named hold no sessions.
const DEEPEST: usize = 12;

/// A file that may be a session.
pub(super) struct File {
    pub(super) path: PathBuf,
    /// Whose it is by its place.
    pub(super) agent: Option<Agent>,
    pub(super) modified: Timestamp,
    pub(super) bytes: u64,
}

/// Lists the files below `folder` whose names fit `layout`, a name for each level. A folder that is not
/// there has none.
pub(super) fn expand(
    agent: Agent,
    folder: &Path,
    layout: &[&str],
    files: &mut Vec<File>,
    problems: &mut Vec<Error>,
) {
    let Some((name, deeper)) = layout.split_first() else { return };
    if !name.contains('*') {
        let below = folder.join(name);
        if below.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
            expand(agent, &below, deeper, files, problems);
        }
        return;
    }
    let mut each = |entry: DirEntry, problems: &mut Vec<Error>| {
        let Ok(kind) = entry.file_type() else { return };
        if !fits(&entry, name) {
            return;
        }
        if deeper.is_empty() {
            // One that went away since is no problem.
            let metadata = entry.metadata().ok().filter(Metadata::is_file);
            files.extend(metadata.map(|metadata| file(entry.path(), Some(agent), &metadata)));
        } else if kind.is_dir() {
            expand(agent, &entry.path(), deeper, files, problems);
        }
    };
    match std::fs::read_dir(folder) {
        Ok(entries) => entries.flatten().for_each(|entry| each(entry, problems)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => problems.push(io_error("cannot list the folder", folder, error)),
    }
}

/// Lists the files below `folder` whose names are those of transcripts, at any depth.
pub(super) fn below(folder: &Path, files: &mut Vec<File>, problems: &mut Vec<Error>) -> Result<()> {
    let listed = |folder: &Path| {
        std::fs::read_dir(folder).map_err(|e| io_error("cannot list the folder", folder, e))
    };
    let mut folders = vec![(0, listed(folder)?)];
    while let Some((depth, entries)) = folders.pop() {
        for entry in entries.flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && entry.file_name() != "subagents" && depth < DEEPEST {
                match listed(&entry.path()) {
                    Ok(entries) => folders.push((depth + 1, entries)),
                    Err(error) => problems.push(error),
                }
            } else if kind.is_file() && fits(&entry, "*.jsonl") {
                let metadata = entry.metadata().ok();
                files.extend(metadata.map(|metadata| file(entry.path(), None, &metadata)));
            }
        }
    }
    Ok(())
}

fn file(path: PathBuf, agent: Option<Agent>, metadata: &Metadata) -> File {
    let modified = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let modified = modified.and_then(|at| i64::try_from(at.as_millis()).ok()).unwrap_or(0);
    File { path, agent, modified: Timestamp(modified), bytes: metadata.len() }
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

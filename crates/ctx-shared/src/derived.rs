//! Files that this host derived from the lines of a session: tool results that were moved out of its
//! messages, and values that engines stored for it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use ctx_core::Result;
use ctx_disk as disk;
use ctx_session::key::FileId;
use ctx_session::{FileBlobs, Home, SessionStore, blob_names_in, is_value_of};
use ctx_store::LogName;

/// Deletes what this host derived from lines that were erased elsewhere: the tool results that only
/// they name, and all values of engines, because it is unknown which of them are derived from the
/// lines. The engine then starts as with a new session.
pub(crate) fn delete_derived(
    home: &Home,
    log: &LogName,
    path: &Path,
    before: &[u8],
    after: &[u8],
) -> Result<()> {
    let agent = FileId::new(&log.agent)?;
    delete_results(home, &agent, path, before, after)?;
    delete_values(home, &agent, log, path)
}

fn names(text: &[u8]) -> HashSet<String> {
    blob_names_in(&String::from_utf8_lossy(text)).collect()
}

fn delete_results(
    home: &Home,
    agent: &FileId,
    path: &Path,
    before: &[u8],
    after: &[u8],
) -> Result<()> {
    let (mut gone, kept) = (names(before), names(after));
    gone.retain(|name| !kept.contains(name));
    if gone.is_empty() {
        return Ok(());
    }
    let results = FileBlobs::at(home.tool_results_dir(agent));
    let stored: HashSet<String> = results.names()?.into_iter().collect();
    gone.retain(|name| stored.contains(name));
    for other in list(&home.sessions_dir(agent))? {
        let is_other = other != path && other.extension().is_some_and(|end| end == "jsonl");
        if gone.is_empty() || !is_other {
            continue;
        }
        let text = disk::read(&other).map_err(|e| failed(&other, e))?;
        let kept = names(&text);
        gone.retain(|name| !kept.contains(name));
    }
    gone.iter().try_for_each(|name| results.remove(name).map(drop))
}

fn delete_values(home: &Home, agent: &FileId, log: &LogName, path: &Path) -> Result<()> {
    let folders = list(&home.store_dir(agent))?;
    if folders.is_empty() {
        return Ok(());
    }
    let id = log.file.split("-topic-").next().unwrap_or_default();
    let mut names = vec![log.file.clone(), id.to_owned(), path.to_string_lossy().into_owned()];
    let sessions = SessionStore::at(home.sessions_file(agent)).load()?;
    let own = sessions
        .iter()
        .filter(|(key, entry)| home.transcript(key, entry).is_ok_and(|of_entry| of_entry == path));
    names.extend(own.map(|(key, _)| key.to_string()));
    for kind in folders {
        for owner in list(&kind)? {
            for file in list(&owner)? {
                let opened = disk::open(&file).map_err(|e| failed(&file, e))?;
                let line = disk::first_line(&opened).map_err(|e| failed(&file, e))?;
                let line = String::from_utf8_lossy(&line);
                let key = serde_json::from_str(&line).unwrap_or_else(|_| line.into_owned());
                if names.iter().any(|name| is_value_of(&key, name)) {
                    disk::remove(&file, "cannot delete a value of an engine")?;
                }
            }
        }
    }
    Ok(())
}

/// Returns the paths in a folder; none if it is missing, or not a folder.
fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    disk::list(folder).map_err(|e| failed(folder, e))
}

fn failed(path: &Path, error: std::io::Error) -> ctx_core::Error {
    disk::io_error("cannot read what is derived from a session", path, error)
}

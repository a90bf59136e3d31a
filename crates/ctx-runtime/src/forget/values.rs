//! What engines keep of sessions: it is made of messages, and nobody but the engine can read it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result};
use ctx_session::key::FileId;
use ctx_session::paths::Home;

use super::places::listed;
use super::plan::Plan;

/// A name that is shorter is in keys by chance.
const SHORTEST: usize = 4;

/// A value in a file: a line with its key, and the rest.
struct Value {
    path: PathBuf,
    folder: PathBuf,
    key: String,
    text: String,
}

/// The files that go. Where an engine keeps anything of a session that was drawn from what is to be
/// forgotten, all that it keeps of that session goes: it begins anew, as with a session that it does
/// not know, where a part of it would be damage.
pub(super) fn to_go(home: &Home, agent: &FileId, plan: &Plan) -> Result<Vec<PathBuf>> {
    let values = values_in(&home.store_dir(agent))?;
    let holds = |value: &Value| plan.needle.as_ref().is_some_and(|n| n.is_in(&value.text));
    let mut gone: BTreeSet<PathBuf> = BTreeSet::new();
    for session in plan.sessions.iter().filter(|session| session.all || !session.entries.is_empty())
    {
        let names: Vec<&String> =
            session.names.iter().filter(|name| name.len() >= SHORTEST).collect();
        let is_of = |value: &&Value| names.iter().any(|name| value.key.contains(name.as_str()));
        let tells =
            |value: &&Value| session.all || session.only.are_in(&value.text) || holds(value);
        let of_session: Vec<&Value> = values.iter().filter(is_of).collect();
        let folders: BTreeSet<&Path> =
            of_session.iter().filter(|value| tells(value)).map(|v| v.folder.as_path()).collect();
        let of_folders = of_session.iter().filter(|v| folders.contains(v.folder.as_path()));
        gone.extend(of_folders.map(|value| value.path.clone()));
    }
    gone.extend(values.iter().filter(|value| holds(value)).map(|value| value.path.clone()));
    Ok(gone.into_iter().collect())
}

/// Removes them.
pub(super) fn remove(paths: &[PathBuf]) -> Result<usize> {
    let mut gone = 0;
    for path in paths {
        match std::fs::remove_file(path) {
            Ok(()) => gone += 1,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => {
                return Err(Error::new(ErrorKind::Io, "what an engine keeps cannot be removed")
                    .with("path", path.display())
                    .source(e)
                    .hint("check the owner and the permissions of the file and its folder"));
            }
        }
    }
    Ok(gone)
}

fn values_in(root: &Path) -> Result<Vec<Value>> {
    let mut values = Vec::new();
    for kind in folders_in(root)? {
        for folder in folders_in(&kind)? {
            for path in listed(&folder)? {
                // Half-written ones hold as much.
                let Ok(bytes) = std::fs::read(&path) else { continue };
                let whole = String::from_utf8_lossy(&bytes);
                let (key, text) = whole.split_once('\n').unwrap_or((&whole, ""));
                let (key, text) = (key.to_owned(), text.to_owned());
                values.push(Value { path, folder: folder.clone(), key, text });
            }
        }
    }
    Ok(values)
}

fn folders_in(folder: &Path) -> Result<Vec<PathBuf>> {
    Ok(listed(folder)?.into_iter().filter(|path| path.is_dir()).collect())
}

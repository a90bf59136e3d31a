//! Values that engines store for sessions: derived from messages, and readable only by the engine.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ctx_core::Result;
use ctx_session::key::FileId;
use ctx_session::{Home, is_value_of};

use super::search_text::unescaped;
use super::targets::Targets;
use super::{ForgetRequest, RemainingCopy};
use crate::files::list_folder;

/// A value in a file: a line with its key, then the content.
struct Value {
    path: PathBuf,
    folder: PathBuf,
    key: String,
    text: String,
}

/// Returns the files to erase, and the unreadable ones. If an engine stored anything derived from
/// erased messages, all its values of that session are erased: the engine then starts as with a new
/// session. Removing a part would corrupt its state. If the erased messages are only in the
/// archive, all values of their sessions are erased, as it is unknown which are derived from them.
pub(super) fn to_go(
    home: &Home,
    what: &ForgetRequest,
    agent: &FileId,
    plan: &Targets,
    without_transcript: &BTreeSet<&str>,
) -> Result<(Vec<PathBuf>, Vec<RemainingCopy>)> {
    let (values, unread) = values_in(&home.store_dir(agent))?;
    let holds = |value: &Value| plan.needle.as_ref().is_some_and(|n| n.is_in_file(&value.text));
    let mut gone: BTreeSet<PathBuf> = BTreeSet::new();
    for session in &plan.sessions {
        let is_of = |value: &&Value| session.names.iter().any(|name| is_value_of(&value.key, name));
        let tells = |value: &&Value| {
            session.all || session.only.are_in(&unescaped(&value.text)) || holds(value)
        };
        let of_session: Vec<&Value> = values.iter().filter(is_of).collect();
        let folders: BTreeSet<&Path> =
            of_session.iter().filter(|value| tells(value)).map(|v| v.folder.as_path()).collect();
        let of_folders = of_session.iter().filter(|v| folders.contains(v.folder.as_path()));
        gone.extend(of_folders.map(|value| value.path.clone()));
    }
    let has_none =
        |value: &&Value| without_transcript.iter().any(|name| is_value_of(&value.key, name));
    gone.extend(values.iter().filter(has_none).map(|value| value.path.clone()));
    // A named session limits the search for a text.
    if what.session.is_none() {
        gone.extend(values.iter().filter(|value| holds(value)).map(|value| value.path.clone()));
    }
    Ok((gone.into_iter().collect(), unread))
}

/// Removes the files, and returns how many existed.
pub(super) fn remove(paths: &[PathBuf]) -> Result<usize> {
    let mut gone = 0;
    for path in paths {
        gone += usize::from(ctx_disk::remove(path, "cannot remove the values of an engine")?);
    }
    Ok(gone)
}

fn values_in(root: &Path) -> Result<(Vec<Value>, Vec<RemainingCopy>)> {
    let (mut values, mut unread) = (Vec::new(), Vec::new());
    for kind in folders_in(root)? {
        for folder in folders_in(&kind)? {
            for path in list_folder(&folder)? {
                // Partly written files contain the same data.
                let bytes = match ctx_disk::read(&path) {
                    Ok(bytes) => bytes,
                    Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
                    Err(e) => {
                        let why = format!("cannot read the values of an engine: {e}");
                        unread.push(RemainingCopy { path, why });
                        continue;
                    }
                };
                let whole = String::from_utf8_lossy(&bytes);
                let (key, text) = whole.split_once('\n').unwrap_or((&whole, ""));
                let key = serde_json::from_str(key).unwrap_or_else(|_| key.to_owned());
                values.push(Value { path, folder: folder.clone(), key, text: text.to_owned() });
            }
        }
    }
    Ok((values, unread))
}

fn folders_in(folder: &Path) -> Result<Vec<PathBuf>> {
    Ok(list_folder(folder)?.into_iter().filter(|path| path.is_dir()).collect())
}

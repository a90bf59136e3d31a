//! A last look: whether anything in the home still holds what was to be forgotten.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::places::listed;
use super::words::Needle;

/// So much of a file is read at once.
const CHUNK: usize = 1 << 20;

/// What a last look found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Files that hold the text.
    pub(super) holding: Vec<PathBuf>,
    /// Files and folders that cannot be read.
    pub(super) unread: Vec<PathBuf>,
}

/// Looks through the files below a folder for a text, whatever the case of its letters, however it is
/// broken into lines and whatever escapes of JSON it is written with. Links are not followed.
pub(super) fn look(root: &Path, needle: &Needle) -> Seen {
    let mut seen = Seen::default();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(paths) = listed(&folder) else {
            seen.unread.push(folder);
            continue;
        };
        for path in paths {
            match path.symlink_metadata() {
                Ok(found) if found.is_dir() => folders.push(path),
                Ok(found) if found.is_file() => match holds(&path, needle) {
                    Ok(true) => seen.holding.push(path),
                    Ok(false) => {}
                    Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                    Err(_) => seen.unread.push(path),
                },
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(_) => seen.unread.push(path),
            }
        }
    }
    seen.holding.sort_unstable();
    seen.unread.sort_unstable();
    seen
}

fn holds(path: &Path, needle: &Needle) -> io::Result<bool> {
    let longest = needle.longest();
    let mut file = ctx_disk::open(path)?;
    let mut buffer = Vec::with_capacity(CHUNK + longest);
    loop {
        if file.by_ref().take(CHUNK as u64).read_to_end(&mut buffer)? == 0 {
            return Ok(false);
        }
        if needle.is_in_file(&String::from_utf8_lossy(&buffer)) {
            return Ok(true);
        }
        // What begins at the end of this part may go on in the next.
        let rest = buffer.len().saturating_sub(longest);
        buffer.drain(..rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_across_parts_in_any_case_and_as_json_writes_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("deep")).unwrap();
        let padded = |before: usize, text: &str| format!("{}{text}tail", "x".repeat(before));
        std::fs::write(at("deep/across"), padded(CHUNK - 5, "Red \"heron\"")).unwrap();
        std::fs::write(at("deep/broken"), padded(CHUNK - 5, "Red\n\n  \"heron\"")).unwrap();
        std::fs::write(at("json"), r#"{"a":"a red \"heron\""}"#).unwrap();
        std::fs::write(at("other"), padded(10, "red herring")).unwrap();
        std::fs::write(at("empty"), "").unwrap();
        let found = look(folder.path(), &Needle::new(" RED \"heron\" "));
        assert_eq!(found.holding, [at("deep/across"), at("deep/broken"), at("json")]);
        assert_eq!(look(folder.path(), &Needle::new(" ")), Seen::default());
        std::fs::write(at("umlaut"), r"DER GR\u00dcNE Reiher").unwrap();
        assert_eq!(look(folder.path(), &Needle::new("der grüne")).holding, [at("umlaut")]);
    }
}

//! Checks finally whether a file of the home still contains the forgotten text.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::search_text::SearchText;
use crate::files::list_folder;

/// Number of bytes read at once.
const CHUNK: usize = 1 << 20;

/// The result of the final check.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SweepResult {
    /// Files that contain the text.
    pub(super) holding: Vec<PathBuf>,
    /// Files and folders that cannot be read.
    pub(super) unread: Vec<PathBuf>,
}

/// Searches the files below a folder for a text, ignoring case, line breaks and JSON escapes. Links
/// are not followed.
pub(super) fn look(root: &Path, needle: &SearchText) -> SweepResult {
    let mut seen = SweepResult::default();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(paths) = list_folder(&folder) else {
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

fn holds(path: &Path, needle: &SearchText) -> io::Result<bool> {
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
        // A match may continue in the next chunk.
        let rest = buffer.len().saturating_sub(longest);
        buffer.drain(..rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_across_chunks_in_any_case_and_json_escaped() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("deep")).unwrap();
        let padded = |before: usize, text: &str| format!("{}{text}tail", "x".repeat(before));
        std::fs::write(at("deep/across"), padded(CHUNK - 5, "Red \"heron\"")).unwrap();
        std::fs::write(at("deep/broken"), padded(CHUNK - 5, "Red\n\n  \"heron\"")).unwrap();
        std::fs::write(at("json"), r#"{"a":"a red \"heron\""}"#).unwrap();
        std::fs::write(at("other"), padded(10, "red herring")).unwrap();
        std::fs::write(at("empty"), "").unwrap();
        let found = look(folder.path(), &SearchText::new(" RED \"heron\" "));
        assert_eq!(found.holding, [at("deep/across"), at("deep/broken"), at("json")]);
        assert_eq!(look(folder.path(), &SearchText::new(" ")), SweepResult::default());
        std::fs::write(at("umlaut"), r"DER GR\u00dcNE Reiher").unwrap();
        assert_eq!(look(folder.path(), &SearchText::new("der grüne")).holding, [at("umlaut")]);
    }
}

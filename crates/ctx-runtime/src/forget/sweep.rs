//! A last look: whether anything in the home still holds what was to be forgotten.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use ctx_core::Result;

use super::places::listed;

/// So much of a file is read at once.
const CHUNK: usize = 1 << 20;

/// The files below a folder that hold a text as it is or as JSON writes it, whatever the case of
/// ASCII letters. Links are not followed; what cannot be read is passed over.
pub(super) fn files_holding(root: &Path, text: &str) -> Result<Vec<PathBuf>> {
    let text = text.trim().to_ascii_lowercase();
    let quoted = serde_json::to_string(&text).unwrap_or_default();
    let quoted = quoted.trim_matches('"').to_owned();
    let mut needles = vec![text.into_bytes()];
    if quoted.as_bytes() != needles[0] {
        needles.push(quoted.into_bytes());
    }
    needles.retain(|needle| !needle.is_empty());
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in listed(&folder)? {
            let Ok(metadata) = path.symlink_metadata() else { continue };
            if metadata.is_dir() {
                folders.push(path);
            } else if metadata.is_file() && holds(&path, &needles).unwrap_or(false) {
                found.push(path);
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}

fn holds(path: &Path, needles: &[Vec<u8>]) -> io::Result<bool> {
    let longest = needles.iter().map(Vec::len).max().unwrap_or(0);
    let mut file = File::open(path)?;
    let mut buffer = Vec::with_capacity(CHUNK + longest);
    loop {
        let kept = buffer.len();
        if file.by_ref().take(CHUNK as u64).read_to_end(&mut buffer)? == 0 {
            return Ok(false);
        }
        buffer[kept..].make_ascii_lowercase();
        if needles.iter().any(|needle| memchr::memmem::find(&buffer, needle).is_some()) {
            return Ok(true);
        }
        // What begins at the end of this part may go on in the next.
        let rest = buffer.len().saturating_sub(longest.saturating_sub(1));
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
        std::fs::write(at("json"), r#"{"a":"a red \"heron\""}"#).unwrap();
        std::fs::write(at("other"), padded(10, "red herring")).unwrap();
        std::fs::write(at("empty"), "").unwrap();
        let found = files_holding(folder.path(), " RED \"heron\" ").unwrap();
        assert_eq!(found, [at("deep/across"), at("json")]);
        assert!(files_holding(folder.path(), " ").unwrap().is_empty());
    }
}

//! Resolves paths and checks whether they stay in the folder.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use ctx_core::Result;

use super::no_folder;

/// The working folder of tools.
pub(super) struct WorkingFolder {
    folder: PathBuf,
    /// The folder of stored tool results, which may be read without permission.
    results: Option<PathBuf>,
}

/// A resolved path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Located {
    /// The target, with links followed.
    pub(super) path: PathBuf,
    pub(super) is_outside: bool,
}

impl WorkingFolder {
    pub(super) fn new(folder: &Path) -> Result<Self> {
        let folder = folder.canonicalize().map_err(|error| no_folder(folder, error))?;
        Ok(Self { folder, results: None })
    }

    /// Sets the folder in which tool results are stored.
    pub(super) fn with_results(self, results: &Path) -> Self {
        Self { results: Some(results.to_owned()), ..self }
    }

    /// Whether a path is a stored tool result.
    pub(super) fn is_result(&self, located: &Located) -> bool {
        // The folder is created with the first result, and its path may contain links.
        let results = self.results.as_ref().and_then(|results| results.canonicalize().ok());
        results.is_some_and(|results| located.path.starts_with(results))
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Resolves a path. Links are followed in the part that exists. The part that does not exist
    /// must consist of plain names.
    pub(super) fn find(&self, path: &str) -> Result<Located, String> {
        if path.is_empty() || path.contains('\0') {
            return Err(format!("invalid path {path:?}"));
        }
        let asked = self.folder.join(path);
        let mut missing: Vec<OsString> = Vec::new();
        let mut there = asked.as_path();
        let found = loop {
            match there.canonicalize() {
                Ok(found) => break found,
                // A dangling link: the target does not exist. Writing to the link would create it.
                Err(error) if there.symlink_metadata().is_ok() => {
                    return Err(format!("{path}: {error}"));
                }
                Err(_) => {}
            }
            let (Some(parent), Some(Component::Normal(name))) =
                (there.parent(), there.components().next_back())
            else {
                return Err(format!("{path}: not found"));
            };
            missing.push(name.to_owned());
            there = parent;
        };
        if !missing.is_empty() && !found.is_dir() {
            return Err(format!("{path}: {} is not a folder", found.display()));
        }
        let mut path = found;
        path.extend(missing.into_iter().rev());
        let is_outside = !path.starts_with(&self.folder);
        Ok(Located { path, is_outside })
    }

    /// Formats a path for the user, relative to the folder if inside.
    pub(super) fn shown(&self, located: &Located) -> String {
        match located.path.strip_prefix(&self.folder) {
            Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
            Ok(inside) => inside.display().to_string(),
            Err(_) => located.path.display().to_string(),
        }
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn every_path_that_leaves_the_folder_is_outside() {
        let room = tempfile::tempdir().unwrap();
        let folder = room.path().join("here");
        std::fs::create_dir_all(folder.join("src")).unwrap();
        std::fs::write(folder.join("src/a.rs"), "a").unwrap();
        std::fs::create_dir(room.path().join("here-too")).unwrap();
        symlink(room.path(), folder.join("up")).unwrap();
        symlink("src", folder.join("code")).unwrap();
        symlink("/nowhere/at/all", folder.join("nowhere")).unwrap();
        let place = WorkingFolder::new(&folder).unwrap();
        let full = place.folder().join("src/a.rs").display().to_string();
        for (path, outside) in [
            ("src/a.rs", false),
            (full.as_str(), false),
            ("src/../src/./a.rs", false),
            ("code/a.rs", false),
            ("new/folder/file", false),
            (".", false),
            ("..", true),
            ("../here-too/x", true),
            ("up/x", true),
            ("/etc/passwd", true),
            ("src/../../x", true),
        ] {
            assert_eq!(place.find(path).map(|found| found.is_outside), Ok(outside), "{path}");
        }
        for path in ["", "nowhere", "nowhere/x", "missing/../../x", "src/a.rs/x", "a\0b"] {
            assert!(place.find(path).is_err(), "{path:?}");
        }
        assert_eq!(place.shown(&place.find("code/a.rs").unwrap()), "src/a.rs");
        assert_eq!(place.shown(&place.find(".").unwrap()), ".");
    }
}
